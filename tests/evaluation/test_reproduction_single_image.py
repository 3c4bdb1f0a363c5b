# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Questions about single images: records as they come, and answers against a model that is asked plainly."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from radical_haystack.evaluation.reproductions import Settings, reproduce
from radical_haystack.evaluation.reproductions.single_image import (
    TEMPLATE,
    Asked,
    ImageQuestion,
    divergence,
    is_contained,
    is_exact,
    read_records,
)
from radical_haystack.pruning import build_pruner
from radical_haystack.vlm import ListwiseVLM
from radical_haystack.vlm.prompt import PromptBuilder

WriteRecords = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> WriteRecords:
    """Writes lines, records or texts, beside a picture that can be read and one that cannot."""
    Image.new("RGB", (64, 64), "red").save(tmp_path / "red.png")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG and no more")

    def call(*lines: Any) -> Path:
        path = tmp_path / "records.jsonl"
        path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
        return path

    return call


def record(**changes: Any) -> dict[str, Any]:
    return {"image": "red.png", "question": "What colour is it?", "answer": "red", **changes}


def test_records_are_read_from_a_file_or_its_folder(write: WriteRecords) -> None:
    path = write(record(), "", record(question="Is it red?", answer="yes", more=1))
    for source in (path, path.parent):
        found = read_records(source)
        assert [(one.question, one.answer) for one in found] == [("What colour is it?", "red"), ("Is it red?", "yes")]
        assert found[0].image.size == (64, 64)


@pytest.mark.parametrize(
    ("broken", "parts"),
    [
        ("{", ["line 2", "not JSON"]),
        ([1], ["line 2", "image, question, answer"]),
        ({"image": "red.png", "question": "What?"}, ["line 2", "'answer'"]),
        (record(question="  "), ["line 2", "'question'"]),
        (record(image=3), ["line 2", "'image'"]),
        (record(image="broken.png"), ["line 2", "broken.png"]),
        (record(image="nowhere.png"), ["line 2", "nowhere.png"]),
    ],
)
def test_a_broken_record_is_named(write: WriteRecords, broken: Any, parts: list[str]) -> None:
    path = write(record(), broken, record())
    with pytest.raises(ValueError, match="records.jsonl") as stop:
        read_records(path)
    message = str(stop.value)
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_no_records(tmp_path: Path, write: WriteRecords) -> None:
    with pytest.raises(ValueError, match="no records"):
        read_records(write())
    with pytest.raises(FileNotFoundError, match="elsewhere"):
        read_records(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("text", "answer", "exact", "contained"),
    [
        ("Red.", "red", True, True),
        ("the red", "Red", True, True),
        ("It is red, I think", "red", False, True),
        ("redder", "red", False, False),
        ("dark blue", "blue dark", False, False),
        ("", "red", False, False),
    ],
)
def test_right_answers(text: str, answer: str, exact: bool, contained: bool) -> None:
    assert (is_exact(text, answer), is_contained(text, answer)) == (exact, contained)


def test_divergence() -> None:
    of, to = torch.tensor([0.5, 0.25, 0.25]), torch.tensor([0.25, 0.25, 0.5])
    expected = sum(float(p) * float((p / q).log()) for p, q in zip(of, to, strict=True))
    assert divergence(of.log(), to.log()) == pytest.approx(expected)
    assert divergence(of.log(), of.log()) == 0.0


def test_an_unpruned_answer_is_the_models_own(tiny_vlm: str) -> None:
    vlm = ListwiseVLM.load(tiny_vlm, device="cpu")
    asked = Asked(vlm)
    one = ImageQuestion(Image.new("RGB", (48, 40), "red"), "What colour is it?", "bright red")
    answer = asked(one, build_pruner("dense"))
    # The same by hand: one plain pass over the prompt with the answer behind it.
    encodings = vlm.encode([one.image])
    prompt = PromptBuilder(vlm.processor, TEMPLATE).build(one.question, [len(encodings[0].tokens)])
    ids = vlm.processor.tokenizer(one.answer, add_special_tokens=False)["input_ids"]
    inputs = vlm.processor.image_processor(images=[one.image], size=vlm._size, return_tensors="pt")
    words = torch.cat([prompt.input_ids, torch.tensor([ids])], dim=1)
    types = torch.cat([prompt.token_types, torch.zeros(1, len(ids), dtype=torch.int64)], dim=1)
    with torch.inference_mode():
        logits = vlm.model(input_ids=words, mm_token_type_ids=types, **inputs).logits[0].log_softmax(-1)
    first = prompt.layout.length - 1
    expected = sum(float(logits[first + place, token]) for place, token in enumerate(ids))
    assert answer.log_probability == pytest.approx(expected, abs=1e-3)
    assert torch.allclose(answer.first, logits[first], atol=1e-3)
    assert answer.kept_share == 1.0
    everything = asked(one, build_pruner("fastv", keep_ratio=1.0, depth=6))
    assert everything.text == answer.text
    assert everything.log_probability == pytest.approx(answer.log_probability, abs=1e-3)


def test_pruning_keeps_its_share_and_records_of_ones_own_are_measured(tiny_vlm: str, write: WriteRecords) -> None:
    reproduce("main", Settings(models=(tiny_vlm,), queries=1, candidates=3, keep_ratios=(0.5,)))  # calibrates it
    path = write(record(), record(question="Is it red?", answer="yes"))
    report = reproduce("single-image", Settings(models=(tiny_vlm,), keep_ratios=(0.5,), records=path))
    dense, radical, random = report.finished[0].outcome.values
    assert [answer["kept_share"] for answer in dense["answers"]] == [1.0, 1.0]
    assert [answer["divergence"] for answer in dense["answers"]] == [0.0, 0.0]
    for method in (radical, random):
        for answer in method["answers"]:
            assert answer["kept_share"] == pytest.approx(0.5, abs=0.2)
            assert answer["divergence"] > 0
    text = " ".join(report.finished[0].outcome.notes)
    assert "never to answer questions" not in text


def test_a_model_without_a_schedule_is_refused(
    tiny_vlm: str, write: WriteRecords, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    with pytest.raises(ValueError, match="radical-haystack calibrate"):
        reproduce("single-image", Settings(models=(tiny_vlm,), records=write(record())))
