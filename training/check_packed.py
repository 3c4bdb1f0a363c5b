# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Holds the packed training passes against the library's own forward: `python -m training.check_packed`."""

import torch
from PIL import Image

from training.layout import IDENTIFIERS, SYSTEM, Layout
from training.packed import PackedDecoder, Segment, vision_features
from training.vlm_model import TOKENS_PER_IMAGE, build_model, build_processor, build_tokenizer


@torch.no_grad()
def main() -> None:
    tokenizer = build_tokenizer(
        ["Query: a red shirt with a yellow pocket", SYSTEM, "Reference: A: B: assistant user system"]
    )
    processor = build_processor(tokenizer)
    model = build_model(tokenizer, seed=0).eval()
    pixels = torch.randint(0, 256, (5, 128, 128, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    images = [Image.fromarray(array.numpy()) for array in pixels]
    content = []
    for letter in IDENTIFIERS[:4]:
        content += [{"type": "text", "text": f"{letter}: "}, {"type": "image"}, {"type": "text", "text": "\n"}]
    content += [{"type": "text", "text": "Reference: "}, {"type": "image"}, {"type": "text", "text": "\nQuery: is red"}]
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": content}]
    text = processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    inputs = processor(text=[text], images=images, return_tensors="pt")
    expected = model(**inputs).logits[0, -1]

    features = vision_features(model.model.visual, pixels.permute(0, 3, 1, 2) / 127.5 - 1)
    layout = Layout(tokenizer)
    tokens = torch.arange(TOKENS_PER_IMAGE).expand(1, 4, -1)
    ids, positions, index = layout.prefix(torch.arange(4)[None], tokens)
    prefix = Segment(ids, positions, [f[:4].reshape(1, 1, -1, f.shape[-1]) for f in features], index)
    q_ids, q_positions, q_index, end, _ = layout.segments(
        [layout.encode(" is red")], layout.next_position(4), reference=tokens[0, :1], answers=[[]]
    )
    joined = torch.cat([ids[0, 0], q_ids[0]])
    assert torch.equal(joined, inputs["input_ids"][0]), (
        tokenizer.decode(joined),
        tokenizer.decode(inputs["input_ids"][0]),
    )
    group = Segment(q_ids[None], q_positions[:, None], [f[4:][None] for f in features], q_index[None])
    hidden, _, _ = PackedDecoder(model).forward(prefix, [group])
    logits = model.lm_head(hidden[0][0, 0, end[0]])
    difference = (logits - expected).abs().max().item()
    print(f"largest difference of the answer's logits: {difference:.2e} (logits up to {expected.abs().max():.3f})")
    assert difference < 1e-4


if __name__ == "__main__":
    main()
