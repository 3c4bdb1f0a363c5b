# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
Every table and figure of the paper (arXiv 2609.00667) by name: what is measured here beside what is published.

`reproduce` measures one of `REPRODUCTIONS` or all of them; `write_results` and `write_document` put it in files.
"""

from radical_haystack.evaluation.reproductions.base import Comparison, Outcome, Reproduction
from radical_haystack.evaluation.reproductions.document import write_document
from radical_haystack.evaluation.reproductions.registry import REPRODUCTIONS
from radical_haystack.evaluation.reproductions.running import Finished, Report, reproduce
from radical_haystack.evaluation.reproductions.session import Session, Settings
from radical_haystack.evaluation.reproductions.sheets import Sheet
from radical_haystack.evaluation.reproductions.writing import write_results

__all__ = [
    "REPRODUCTIONS",
    "Comparison",
    "Finished",
    "Outcome",
    "Report",
    "Reproduction",
    "Session",
    "Settings",
    "Sheet",
    "reproduce",
    "write_document",
    "write_results",
]
