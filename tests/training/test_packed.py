# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The packed training passes are the library's own forward, one prompt at a time."""

import pytest
import torch
from PIL import Image

from radical_haystack.pruning import LayerObservation, ScorePruner
from radical_haystack.vlm import ListwiseVLM
from training.layout import IDENTIFIERS, SYSTEM, Layout
from training.packed import PackedDecoder, Segment, vision_features
from training.vlm_model import MODEL_FOLDER, TOKENS_PER_IMAGE, build_model, build_processor, build_tokenizer

CANDIDATES = 4
CUT_LAYER = 5


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer(["Query: a red shirt with a yellow pocket", SYSTEM, "Reference: A: B: assistant user"])


@pytest.fixture(scope="module")
def model(tokenizer):
    return build_model(tokenizer, seed=0).eval()


@pytest.fixture(scope="module")
def pixels():
    return torch.randint(0, 256, (CANDIDATES + 1, 128, 128, 3), dtype=torch.uint8, generator=torch.manual_seed(0))


def prompt_inputs(tokenizer, pixels, query: str, *, reference: bool):
    processor = build_processor(tokenizer)
    content = []
    for letter in IDENTIFIERS[:CANDIDATES]:
        content += [{"type": "text", "text": f"{letter}: "}, {"type": "image"}, {"type": "text", "text": "\n"}]
    if reference:
        content += [{"type": "text", "text": "Reference: "}, {"type": "image"}, {"type": "text", "text": "\n"}]
    content.append({"type": "text", "text": f"Query:{query}"})
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": content}]
    text = processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    images = [Image.fromarray(array.numpy()) for array in pixels[: CANDIDATES + reference]]
    return processor(text=[text], images=images, return_tensors="pt")


@torch.no_grad()
def test_queries_packed_behind_one_prefix_answer_as_one_prompt_each(model, tokenizer, pixels):
    layout = Layout(tokenizer)
    features = vision_features(model.model.visual, pixels.permute(0, 3, 1, 2) / 127.5 - 1)
    tokens = torch.arange(TOKENS_PER_IMAGE).expand(1, CANDIDATES, -1)
    ids, positions, index = layout.prefix(torch.arange(CANDIDATES)[None], tokens)
    prefix = Segment(ids, positions, [f[:CANDIDATES].reshape(1, 1, -1, f.shape[-1]) for f in features], index)
    queries = [" is red", " a red shirt with a yellow pocket"]
    groups, ends = [], []
    for reference in (False, True):
        q_ids, q_positions, q_index, end, _ = layout.segments(
            [layout.encode(query) for query in queries],
            layout.next_position(CANDIDATES),
            reference=tokens[0, :1].expand(len(queries), -1) if reference else None,
            answers=[[], []],
        )
        visual = [f[CANDIDATES:].expand(len(queries), -1, -1)[None] for f in features] if reference else None
        groups.append(Segment(q_ids[None], q_positions[:, None], visual, q_index[None] if reference else None))
        ends.append(end)
    hidden, _, _ = PackedDecoder(model).forward(prefix, groups)
    for reference in (False, True):
        for number, query in enumerate(queries):
            inputs = prompt_inputs(tokenizer, pixels, query, reference=reference)
            end = int(ends[reference][number])
            packed_ids = torch.cat([ids[0, 0], groups[reference].ids[0, number, : end + 1]])
            assert torch.equal(packed_ids, inputs["input_ids"][0])
            logits = model.lm_head(hidden[reference][0, number, end])
            torch.testing.assert_close(logits, model(**inputs).logits[0, -1], atol=1e-4, rtol=0)


class FixedPruner(ScorePruner):
    """Keeps a quarter of the candidates' tokens after one layer, by fixed scores `(V,)`."""

    layers = (CUT_LAYER,)

    def __init__(self, scores: torch.Tensor) -> None:
        self._scores = scores

    def keep_ratio_at(self, layer: int) -> float:
        return 0.25

    def score(self, observation: LayerObservation) -> torch.Tensor:
        return self._scores[observation.active]


@torch.no_grad()
def test_tokens_cut_from_the_prefix_are_gone_as_in_the_package(pixels):
    vlm = ListwiseVLM.load(str(MODEL_FOLDER))
    scores = torch.rand(CANDIDATES * TOKENS_PER_IMAGE, generator=torch.manual_seed(1))
    images = [Image.fromarray(array.numpy()) for array in pixels[:CANDIDATES]]
    expected = vlm.rank("a red shirt", images, pruner=FixedPruner(scores)).scores

    layout = Layout(vlm.processor.tokenizer)
    features = vision_features(vlm.model.model.visual, pixels[:CANDIDATES].permute(0, 3, 1, 2) / 127.5 - 1)
    tokens = torch.arange(TOKENS_PER_IMAGE).expand(1, CANDIDATES, -1)
    ids, positions, index = layout.prefix(torch.arange(CANDIDATES)[None], tokens)
    prefix = Segment(ids, positions, [f.reshape(1, 1, -1, f.shape[-1]) for f in features], index)
    q_ids, q_positions, _, end, _ = layout.segments(
        [layout.encode(" a red shirt")], layout.next_position(CANDIDATES), reference=None, answers=[[]]
    )
    gone = index[0, 0][scores.argsort()[: 3 * len(scores) // 4]]
    stays = torch.ones(ids.shape[2], dtype=torch.bool).index_fill(0, gone, False).nonzero().T
    groups = [Segment(q_ids[None], q_positions[:, None])]
    answers = [
        vlm.model.lm_head(PackedDecoder(vlm.model).forward(prefix, groups, cut=cut)[0][0][0, 0, end[0]])
        for cut in ((CUT_LAYER, stays), None)
    ]
    cut, whole = (answer[layout.letters[:CANDIDATES]].log_softmax(-1) for answer in answers)
    torch.testing.assert_close(cut, torch.tensor(expected), atol=1e-4, rtol=0)
    assert (cut - whole).abs().max() > 1e-2
