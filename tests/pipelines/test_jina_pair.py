# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Jina's own Haystack embedders as a first stage, over HTTP to a server that answers as their API does."""

import base64
import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from haystack import Pipeline
from haystack.utils import ComponentDevice, Secret
from haystack_integrations.components.embedders.jina import JinaDocumentImageEmbedder, JinaTextEmbedder
from PIL import Image

from radical_haystack.pipelines import (
    EmbedderPair,
    FirstStage,
    build_text_to_image_pipeline,
    index_folder,
    open_store,
    search_folder,
)

CPU = ComponentDevice.from_str("cpu")


@pytest.fixture
def pair(tiny_siglip: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbedderPair]:
    stage = FirstStage("behind the API", tiny_siglip)
    text_embedder, image_embedder = stage.text_embedder(device=CPU), stage.image_embedder(device=CPU)

    def embed(item: str) -> list[float]:
        if not item.startswith("data:image/"):
            return text_embedder.run(text=item)["embedding"]
        picture = Image.open(io.BytesIO(base64.b64decode(item.partition(",")[2]))).convert("RGB")
        return image_embedder.embed_images([picture])[0]

    class Api(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            data = [{"embedding": embed(item)} for item in request["input"]]
            body = json.dumps({"data": data, "model": request["model"], "usage": {"total_tokens": 1}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setenv("JINA_API_KEY", "none")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with HTTPServer(("127.0.0.1", 0), Api) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        key = Secret.from_env_var("JINA_API_KEY")
        yield EmbedderPair(
            "jina-clip-v2",
            JinaTextEmbedder(api_key=key, model="jina-clip-v2", base_url=url),
            JinaDocumentImageEmbedder(api_key=key, model="jina-clip-v2", base_url=url),
        )
        server.shutdown()


def test_index_search_and_rerank(pair: EmbedderPair, image_folder: Path, tmp_path: Path, tiny_vlm: str) -> None:
    report = index_folder(image_folder, tmp_path / "s", first_stage=pair)
    assert (report.indexed, report.total) == (12, 12)
    found = search_folder(tmp_path / "s", "a red shirt", first_stage=pair, model=tiny_vlm, top_k=3, device=CPU)
    assert [document.meta["radical"]["rank"] for document in found] == [1, 2, 3]
    pipeline = build_text_to_image_pipeline(open_store(tmp_path / "s"), pair, device=CPU)
    again = Pipeline.loads(pipeline.dumps())
    assert again.dumps() == pipeline.dumps()
    assert again.get_component("embedder").run(text="red") == pipeline.get_component("embedder").run(text="red")
