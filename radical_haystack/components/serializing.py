# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What the `from_dict` of every component with `model_kwargs` begins with."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from haystack.utils.hf import deserialize_hf_model_kwargs


def with_model_kwargs(data: Mapping[str, Any]) -> dict[str, Any]:
    """
    Copy what `to_dict` returned, with data types as objects again.

    :param data: The dictionary; it is left as it is, so that it can be loaded again.
    """
    copied = deepcopy(dict(data))
    deserialize_hf_model_kwargs(copied.get("init_parameters", {}).get("model_kwargs") or {})
    return copied
