# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Table 12: fewer visual tokens by pruning, or by making images smaller before they are encoded."""

from radical_haystack.evaluation.reproductions import published
from radical_haystack.evaluation.reproductions.base import METHODS, Outcome, Reproduction
from radical_haystack.evaluation.reproductions.comparing import (
    MEASURED,
    main_estimate,
    mean_difference,
    orientation,
    paper_text,
    ratio_text,
)
from radical_haystack.evaluation.reproductions.session import Session
from radical_haystack.evaluation.reproductions.sheets import MISSING, Sheet, interval, number, percent, signed


class DynRes(Reproduction):
    """Pruning against resizing."""

    name = "dynres"
    number = "table 12"
    shows = "Whether giving each image a smaller size by its importance does as well as pruning tokens in the decoder."
    comparison = METHODS
    methods = ("dense", "radical", "lowres", "dynres-qrel", "dynres-dti")

    def run(self, session: Session) -> Outcome:
        """See `Reproduction`."""
        results = session.compare(METHODS)
        data = session.settings.data
        rows, values = [], []
        for method, ratio in results.variants:
            if method not in self.methods:
                continue
            row = results.row(method, ratio)
            values.append(row.to_dict())
            difference = mean_difference(results, (method, ratio), ("radical", ratio))
            rows.append((
                method,
                ratio_text(ratio),
                interval(main_estimate(results, row)),
                MISSING if method == "radical" else signed(difference),
                percent(row.kept_share),
                number(1000 * row.encode_seconds, 0),
                number(1000 * row.prefill_seconds, 0),
                paper_text(data, method, ratio),
            ))  # fmt: skip
        columns = (
            "method", "R", MEASURED, "Δ to RaDiCal", "tokens %", "own encoding ms", "prefill ms",
            published.column(data),
        )  # fmt: skip
        sheet = Sheet("MRR@10 in percent: pruning in the decoder against smaller images", columns, tuple(rows))
        notes = (
            orientation(data),
            "Methods that resize must encode every image again for every query; this own encoding comes on top of the "
            "encodings at full size, which a vision cache keeps and DynRes needs for its choice of sizes.",
        )
        return Outcome((sheet,), notes, values=values)
