# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Tiny untrained models as folders, for all that loads one by its path, and the command line. Nothing is downloaded."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from PIL import Image, ImageDraw
from transformers import SiglipConfig, SiglipImageProcessor, SiglipModel, SiglipProcessor

from radical_haystack.cli import main
from tests.vlm.conftest import build_model, build_processor, build_tokenizer

# How long an example takes says more about the machine than about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What models measure of themselves stays out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def run_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Runs a command in this process: its exit code and what it printed to stdout and stderr."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["radical-haystack", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0), *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def tiny_vlm(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a random Qwen3-VL with 6 layers."""
    folder = tmp_path_factory.mktemp("vlm")
    build_model().save_pretrained(folder)
    build_processor().save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def tiny_siglip(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a random SigLIP with embeddings of length 32."""
    folder = tmp_path_factory.mktemp("siglip")
    tokenizer = build_tokenizer()
    tokenizer.model_max_length = 64
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = {
        **shape,
        "vocab_size": len(tokenizer),
        "projection_size": 32,
        "max_position_embeddings": 64,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    torch.manual_seed(0)
    vision = {**shape, "image_size": 32, "patch_size": 8}
    SiglipModel(SiglipConfig(text_config=text, vision_config=vision)).save_pretrained(folder)
    processor = SiglipImageProcessor(size={"height": 32, "width": 32})
    SiglipProcessor(image_processor=processor, tokenizer=tokenizer).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def image_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve pictures that differ, four of them in a subfolder."""
    folder = tmp_path_factory.mktemp("images")
    (folder / "more").mkdir()
    for number in range(12):
        image = Image.new("RGB", (40 + 4 * number, 48), (20 * number, 255 - 20 * number, 90))
        ImageDraw.Draw(image).ellipse((5, 5, 10 + 2 * number, 40), fill=(255, 10 * number, 0))
        image.save(folder / ("more" if number % 3 == 0 else ".") / f"picture-{number:02d}.png")
    return folder
