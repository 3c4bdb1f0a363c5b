# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""What the running app gives to crafted requests over HTTP: no file but uploads, and clear refusals."""

import io
import json
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from PIL import Image

from radical_haystack.app.searching import MAX_UPLOAD_BYTES, Searcher


class Client:
    """Calls the app's handlers as the page does, but with any values."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=60)
        self.config = self.http.get("/config").json()

    def handler(self, component: str, event: str) -> dict[str, Any]:
        ids = {c["id"] for c in self.config["components"] if c["props"].get("elem_id") == component}
        (found,) = (d for d in self.config["dependencies"] if any(i in ids and e == event for i, e in d["targets"]))
        return found

    def call(self, component: str, event: str, data: list[Any], event_data: Any = None) -> dict[str, Any]:
        """The last message of a handler: `success` and `output`."""
        session = uuid.uuid4().hex
        body = {
            "data": data,
            "event_data": event_data,
            "fn_index": self.handler(component, event)["id"],
            "session_hash": session,
        }
        self.http.post("/gradio_api/queue/join", json=body).raise_for_status()
        with self.http.stream("GET", "/gradio_api/queue/data", params={"session_hash": session}) as stream:
            for line in stream.iter_lines():
                message = json.loads(line[5:]) if line.startswith("data:") else {}
                if message.get("msg") == "process_completed":
                    return message
        raise AssertionError("no answer")

    def upload(self, data: bytes, name: str = "image.png") -> httpx.Response:
        return self.http.post("/gradio_api/upload", files={"files": (name, data)})


@pytest.fixture(scope="module")
def client(served) -> Client:
    return Client(served.url)


@pytest.fixture
def secret_server() -> Iterator[tuple[str, list[str]]]:
    """Another server on this machine, and what it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"secret")

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/secret.png", asked
    server.shutdown()


def file_data(path: str, **more: Any) -> dict[str, Any]:
    return {"path": path, "orig_name": "image.png", "meta": {"_type": "gradio.FileData"}, **more}


def png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (64, 48), "red").save(buffer, "PNG")
    return buffer.getvalue()


def test_files_are_not_handed_out(client: Client, searcher: Searcher, tmp_path: Path) -> None:
    root, store = Path(searcher.indexes[0].info.root_path), searcher.indexes[0].path
    (tmp_path / "secret.txt").write_text("for nobody else")
    picture = next(root.glob("*.jpg"))
    traversal = f"{root}/../../../../../../../../../etc/passwd"
    for path in (picture, store / "index.json", tmp_path / "secret.txt", "/etc/passwd", "pyproject.toml", traversal):
        for form in (str(path), quote(str(path), safe=""), f"/{path}"):
            for route in ("/gradio_api/file=", "/file=", "/gradio_api/file/", "/static/", "/assets/", "/theme/../"):
                answer = client.http.get(f"{route}{form}")
                assert answer.status_code >= 400 or "text/html" in answer.headers["content-type"], (route, form)
                assert b"for nobody else" not in answer.content
                assert b"root:" not in answer.content


@pytest.mark.parametrize("place", ["system", "index"])
def test_a_reference_must_have_been_uploaded(client: Client, searcher: Searcher, place: str) -> None:
    root = Path(searcher.indexes[0].info.root_path)
    path = {"system": "/etc/passwd", "index": str(next(root.glob("*.jpg")))}[place]
    answer = client.call("rh-reference", "upload", [file_data(path)])
    assert not answer["success"]
    assert "root:" not in json.dumps(answer)


def test_the_server_fetches_nothing(client: Client, secret_server: tuple[str, list[str]]) -> None:
    url, asked = secret_server
    for data in (file_data(url), file_data("x.png", url=url), file_data("", url=url)):
        client.call("rh-reference", "upload", [data])
    client.http.get(f"/gradio_api/file={url}")
    client.http.get(f"/gradio_api/file={quote(url, safe='')}")
    client.http.get("/gradio_api/proxy=" + url)
    assert asked == []


def test_an_upload_becomes_the_reference(client: Client) -> None:
    (path,) = client.upload(png()).json()
    answer = client.call("rh-reference", "upload", [file_data(path)])
    assert answer["success"]
    assert "The reference is image.png" in json.dumps(answer["output"])


@pytest.mark.parametrize("data", [b"no image", png()[:60], b"<svg xmlns='http://www.w3.org/2000/svg'/>"])
def test_an_unreadable_upload_is_explained(client: Client, data: bytes) -> None:
    (path,) = client.upload(data).json()
    answer = client.call("rh-reference", "upload", [file_data(path)])
    assert answer["success"]
    assert "cannot be read as an image. Choose another file" in json.dumps(answer["output"])


def test_a_large_upload_is_refused(client: Client) -> None:
    answer = client.upload(b"\0" * (MAX_UPLOAD_BYTES + 1))
    assert answer.status_code == 413


@pytest.mark.parametrize("document_id", ["../../etc/passwd", "", None, ["x"], {"a": "b"}])
def test_only_results_can_be_picked(client: Client, document_id: object) -> None:
    answer = client.call("rh-results", "pick", [0], {"id": document_id})
    assert answer["success"]
    assert "not in the index" in json.dumps(answer["output"])


def test_a_pick_cannot_name_a_file(client: Client) -> None:
    assert not client.call("rh-results", "pick", [0], {"id": {"path": "/etc/passwd"}})["success"]


@pytest.mark.parametrize(
    ("place", "value"), [(0, 7), (0, -1), (0, "../x"), (3, "magic"), (4, 7), (4, "x"), (1, "red " * 999)]
)
def test_settings_out_of_range_are_refused(client: Client, place: int, value: object) -> None:
    data: list[Any] = [0, "a red dress", None, "radical", 0.2]
    data[place] = value
    answer = client.call("rh-query", "submit", data)
    shown = json.dumps(answer)
    assert not answer["success"] or "rh-problem" in shown
    assert "Traceback" not in shown


def test_a_search(client: Client) -> None:
    answer = client.call("rh-query", "submit", [0, "a red dress", None, "radical", 0.2])
    assert answer["success"]
    assert "20 candidates in" in json.dumps(answer["output"])


def test_many_at_once(client: Client, served) -> None:
    queries = ["a red dress", "blue shorts", "a green coat"] * 2
    answers: dict[int, str] = {}

    def search(number: int) -> None:
        own = Client(served.url)
        output = own.call("rh-query", "submit", [0, queries[number], None, "radical", 0.2])["output"]
        answers[number] = json.dumps(output, ensure_ascii=False)

    threads = [threading.Thread(target=search, args=(number,)) for number in range(len(queries))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f"“{query}”" in answers[number] for number, query in enumerate(queries))


def test_nothing_is_offered_to_other_programs(client: Client) -> None:
    described = client.http.get("/gradio_api/info").json()
    assert described == {"named_endpoints": {}, "unnamed_endpoints": {}}
    assert client.http.post("/gradio_api/api/search", json={"data": []}).status_code >= 400
    assert client.config["analytics_enabled"] is False
