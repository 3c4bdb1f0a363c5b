# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
Retrieve, rerank, answer: the best three images go to a chat model together with the question.

    python examples/retrieve_rerank_answer.py                                      # on drawn outfits; needs no network
    python examples/retrieve_rerank_answer.py "Which of these dresses is checked?"

`OfflineGenerator` stands in for a chat model and only says what it was given. Any Haystack chat generator whose model
reads images takes its place: change the line that adds it.
"""

import sys
from typing import Any

from haystack import Pipeline, component
from haystack.components.builders import ChatPromptBuilder
from haystack.components.converters.image import DocumentToImageContent
from haystack.dataclasses import ChatMessage

from radical_haystack.catalog import write_gallery
from radical_haystack.components import RadicalRanker
from radical_haystack.pipelines import build_text_to_image_pipeline, index_folder, open_store

FOLDER, INDEX = "outfits", "outfits-index"

# One user message: the question, then the images that were found, best first.
TEMPLATE = """
{% message role="user" %}
{{ question }}
{% for image in images if image %}{{ image | templatize_part }}{% endfor %}
{% endmessage %}
"""


@component
class OfflineGenerator:
    """Has the inputs and outputs of a chat generator and says what it was given."""

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        """
        Reply.

        :param messages: The chat so far.
        :returns: `replies`: one message.
        """
        last = messages[-1]
        files = [image.meta["file_path"] for image in last.images]
        reply = f"I was asked “{(last.text or '').strip()}” and shown {len(files)} images: {', '.join(files)}."
        return {"replies": [ChatMessage.from_assistant(reply)]}


def build_pipeline() -> Pipeline:
    """The search pipeline, and behind it what puts its results before a chat model."""
    ranker = RadicalRanker(root_path=FOLDER, top_k=3)
    pipeline = build_text_to_image_pipeline(open_store(INDEX), ranker=ranker)
    pipeline.add_component("images", DocumentToImageContent(root_path=FOLDER))
    pipeline.add_component("prompt", ChatPromptBuilder(template=TEMPLATE, required_variables=["question", "images"]))
    # For a real answer: OpenAIChatGenerator() of haystack.components.generators.chat, or any other.
    pipeline.add_component("generator", OfflineGenerator())
    pipeline.connect("ranker.documents", "images.documents")
    pipeline.connect("images.image_contents", "prompt.images")
    pipeline.connect("prompt.prompt", "generator.messages")
    return pipeline


def main(question: str = "Which of these dresses has checks?") -> None:
    """Ask about drawn outfits."""
    write_gallery(FOLDER, 48)
    index_folder(FOLDER, INDEX)
    inputs = {"embedder": {"text": question}, "ranker": {"query": question}, "prompt": {"question": question}}
    print(build_pipeline().run(inputs)["generator"]["replies"][0].text)


if __name__ == "__main__":
    main(*sys.argv[1:])
