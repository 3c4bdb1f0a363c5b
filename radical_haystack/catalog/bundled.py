# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Where the small checkpoints are that ship with the package."""

from pathlib import Path

MODELS = Path(__file__).parent / "models"


def bundled_model_path(name: str) -> Path:
    """
    Find a checkpoint that ships with the package.

    :param name: Its name, such as `catalog-vlm-tiny`.
    :returns: The folder, ready for `from_pretrained`.
    :raises FileNotFoundError: If there is none of that name.
    """
    folder = MODELS / name
    known = sorted(path.parent.name for path in MODELS.glob("*/config.json"))
    if name not in known:
        raise FileNotFoundError(f"No bundled model {name!r}; known: {', '.join(known) or 'none'}.")
    return folder
