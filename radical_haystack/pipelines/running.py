# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Running a pipeline on a user's behalf."""

from collections.abc import Mapping
from typing import Any

from haystack import Pipeline
from haystack.core.errors import PipelineRuntimeError


def run_pipeline(pipeline: Pipeline, inputs: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """
    Run a pipeline so that what a component refuses reaches the user in the component's own words.

    Haystack wraps it in a `PipelineRuntimeError` of several lines, of which few are about the mistake.

    :param pipeline: The pipeline.
    :param inputs: Its inputs.
    :param options: Further arguments of `Pipeline.run`.
    :returns: Its outputs.
    """
    try:
        outputs: dict[str, Any] = pipeline.run(dict(inputs), **options)
    except PipelineRuntimeError as error:
        raise error.__cause__ or error from None
    return outputs
