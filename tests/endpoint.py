"""A made-up OpenAI-compatible endpoint on loopback that misbehaves as told. A pytest plugin: `fake` and `alone`."""

import json
import os
import re
import socket
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from repo2ctx.config import TeacherConfig
from repo2ctx.teacher import Teacher, TeacherFile
from repo2ctx.teacher_client import Endpoint
from repo2ctx.teacher_ledger import Ledger

KEY = "sk-very-secret-0123456789"


def count(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]|\n", text))


class FakeEndpoint:
    """Plays an OpenAI-compatible server. `replies`: what the next requests get, a dict over the usual answer; then the usual.

    usual: {text, finish, status, headers, body, drop, usage}; `answer` makes the text from the request.
    """

    def __init__(self):
        self.requests, self.keys, self.replies = [], [], deque()
        self.answer = lambda body: "A small library that keeps notes and finds them."
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args):
                pass

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                fake.requests.append(body)
                fake.keys.append(self.headers["authorization"])
                reply = fake.replies.popleft() if fake.replies else {}
                if reply.get("drop"):
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                text = reply["text"] if "text" in reply else fake.answer(body)
                usage = {"prompt_tokens": count(body["messages"][0]["content"]), "completion_tokens": count(text or "")}
                made = {
                    "id": "1",
                    "object": "chat.completion",
                    "model": body["model"] + "-2024",
                    "choices": [
                        {
                            "index": 0,
                            "finish_reason": reply.get("finish", "stop"),
                            "message": {"role": "assistant", "content": text},
                        }
                    ],
                    "usage": reply.get("usage", usage),
                }
                data = json.dumps(reply.get("body", made)).encode() if "raw" not in reply else reply["raw"]
                self.send_response(reply.get("status", 200))
                for name, value in {"content-type": "application/json", **reply.get("headers", {})}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def alone(monkeypatch):
    """No endpoint of the machine's own in the environment."""
    for name in list(os.environ):
        if name.startswith("OPENAI_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def fake(alone):
    endpoint = FakeEndpoint()
    yield endpoint
    endpoint.close()


@pytest.fixture
def teacher(fake, tmp_path):
    """`teacher(budget=None, offline=False, **config)`: of the fake endpoint, with the same cache each time."""
    made = []

    def make(budget=None, offline=False, retries=2, **config):
        endpoint = Endpoint(fake.url, KEY, timeout_s=10, retries=retries)
        settings = TeacherConfig.model_validate({"model": "big", **config})
        ledger = Ledger(tmp_path / "spent.sqlite", budget)
        made.append(Teacher(settings, None if offline else endpoint, tmp_path / "cache", ledger))
        return made[-1]

    yield make
    for each in made:
        each.close()


def file(path, text, component, rank=0.1):
    return TeacherFile(path, text, component, rank, count(text))


FILES = [file("a.py", "def keep(note): ...\n", 0), file("b.py", "from a import keep\nfind = keep\n", 1)]
