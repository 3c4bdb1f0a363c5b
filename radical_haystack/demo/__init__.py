# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The demo: index the drawn catalogue, search it, measure the reranker, and show it all on one page."""

from radical_haystack.demo.report import write_report
from radical_haystack.demo.run import DemoResult, run_demo

__all__ = ["DemoResult", "run_demo", "write_report"]
