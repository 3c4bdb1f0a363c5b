# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Names of the models that come with this package, usable wherever a hub name is."""

from radical_haystack.catalog import bundled_model_path

BUNDLED_MODELS = ("catalog-vlm-tiny", "catalog-siglip-tiny")
"""Small models trained on the drawn catalogue; no use on photographs."""


def resolve_model(model: str) -> str:
    """
    What to load for a model's name.

    :param model: The name of a bundled model, a hub name, or a folder.
    :returns: The folder of a bundled model; anything else as it is.
    """
    return str(bundled_model_path(model)) if model in BUNDLED_MODELS else model
