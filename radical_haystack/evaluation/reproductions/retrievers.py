# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Table 11: the same reranker behind several first stages."""

from dataclasses import replace

from radical_haystack.evaluation.first_stages import FirstStageComparison, compare_first_stages
from radical_haystack.evaluation.reproductions import published
from radical_haystack.evaluation.reproductions.base import Outcome, Reproduction
from radical_haystack.evaluation.reproductions.session import BUNDLED, Session, Settings
from radical_haystack.evaluation.reproductions.sheets import Sheet, number, percent
from radical_haystack.pipelines.first_stages import FIRST_STAGES, AnyFirstStage

CUT_TO = (24, 8)
"""What the bundled first stage's embeddings are cut to, for first stages that are worse than it."""


class Retrievers(Reproduction):
    """Retriever robustness."""

    name = "retrievers"
    number = "table 11"
    shows = "Whether it matters which first stage found the candidates; name first stages by repeating --first-stage."
    queries = 10

    def refusal(self, settings: Settings) -> str | None:
        """It needs first stages to compare."""
        if settings.is_catalogue or settings.first_stages:
            return None
        return f"'{self.name}' compares first stages: name them with --first-stage."

    def run(self, session: Session) -> Outcome:
        """See `Reproduction`."""
        settings = session.settings
        stages = self._stages(session)
        experiment = session.experiment(("radical",), session.count(self), first_stage=BUNDLED)
        found = compare_first_stages(
            session.prepared(experiment),
            stages,
            session.vlm(),
            candidates=settings.candidates,
            keep_ratio=session.keep_ratio,
            trust_remote_code=settings.trust_remote_code,
            progress=lambda step, done, total: session.progress(f"retrievers: {step.lower()}", done, total),
        )
        notes = (
            "Each first stage searches all images of the query's category. The paper's values are those of its first "
            f"stages with {published.MODEL} on Flickr30K, R = 0.2.",
        )
        return Outcome((_figures(found), _overlaps(found)), notes, values=found.to_dict())

    def _stages(self, session: Session) -> list[AnyFirstStage]:
        given = session.settings.first_stages
        if given:
            return list(given)
        whole = FIRST_STAGES[BUNDLED]
        return [whole, *(replace(whole, name=f"{BUNDLED}, cut to {size}", dimension=size) for size in CUT_TO)]


def _figures(found: FirstStageComparison) -> Sheet:
    rows = tuple(
        (
            name,
            percent(pool.pool_recall),
            percent(pool.first_stage),
            percent(pool.dense),
            number(published.retriever_mrr(name, "dense"), 2),
            percent(pool.radical),
            number(published.retriever_mrr(name, "radical"), 2),
        )
        for name, pool in found.pools.items()
    )
    title = (
        f"MRR@10 in percent over {found.candidates} candidates of each first stage, {found.queries} queries of "
        f"{found.dataset}, R = {found.keep_ratio:g}"
    )
    columns = ("first stage", "target found %", "its own order", "dense", "paper, dense", "RaDiCal", "paper, RaDiCal")
    return Sheet(title, columns, rows)


def _overlaps(found: FirstStageComparison) -> Sheet:
    rows = tuple((two.first, two.second, f"{two.jaccard:.3f}", f"{two.rbo:.3f}") for two in found.overlaps)
    return Sheet("How alike the candidates are", ("first stage", "and", "Jaccard", "RBO"), rows, name="overlaps")
