"""Servers that mean a teacher's client no good, down to the bytes that they send."""

import gzip
import socket
import threading
import time

import pytest
from endpoint import KEY

from repo2ctx.config import TeacherConfig
from repo2ctx.errors import TeacherUnavailableError
from repo2ctx.teacher import Teacher
from repo2ctx.teacher_client import Endpoint
from repo2ctx.teacher_ledger import Ledger

pytestmark = pytest.mark.usefixtures("alone")


@pytest.fixture
def raw_server():
    """`raw_server(chunks)` -> Endpoint of a server that answers each request with these bytes, one after another."""
    servers = []

    def serve(chunks, timeout_s=1.0):
        listening = socket.create_server(("127.0.0.1", 0))
        servers.append(listening)

        def run():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1 << 16)
                    try:
                        for chunk in chunks():
                            connection.sendall(chunk)
                    except OSError:
                        pass

        threading.Thread(target=run, daemon=True).start()
        return Endpoint(f"http://127.0.0.1:{listening.getsockname()[1]}/v1", KEY, timeout_s=timeout_s, retries=1)

    yield serve
    for each in servers:
        each.close()


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


def asked_of(endpoint, tmp_path):
    client = Teacher(TeacherConfig(model="big"), endpoint, tmp_path / "cache", Ledger(tmp_path / "spent", None))
    try:
        return client.ask([{"role": "user", "content": "What is it?"}], 64)
    finally:
        client.close()


def test_an_answer_that_never_ends_is_given_up(raw_server, tmp_path):
    def drip():
        yield HEAD + b"content-length: 100000\r\n\r\n"
        for _ in range(200):
            time.sleep(0.1)
            yield b" "

    start = time.monotonic()
    with pytest.raises(TeacherUnavailableError, match=r"did not end its answer in 1 s"):
        asked_of(raw_server(drip), tmp_path)
    assert time.monotonic() - start < 15


def test_an_answer_without_bound_is_given_up(raw_server, tmp_path):
    def flood():
        packed = gzip.compress(bytes(1 << 26))
        yield HEAD + f"content-encoding: gzip\r\ncontent-length: {len(packed)}\r\n\r\n".encode() + packed

    with pytest.raises(TeacherUnavailableError, match="more than 16 MiB"):
        asked_of(raw_server(flood, timeout_s=30), tmp_path)


def test_an_answer_that_breaks_off_is_tried_again(raw_server, tmp_path):
    def half():
        yield HEAD + b'content-length: 1000\r\n\r\n{"choices": ['

    with pytest.raises(TeacherUnavailableError, match="breaks off"):
        asked_of(raw_server(half), tmp_path)


def test_the_files_go_nowhere_else(fake, tmp_path, raw_server):
    def elsewhere():
        yield f"HTTP/1.1 307 Moved\r\nlocation: {fake.url}/chat/completions\r\ncontent-length: 0\r\n\r\n".encode()

    with pytest.raises(TeacherUnavailableError, match="307"):
        asked_of(raw_server(elsewhere), tmp_path)
    assert not fake.requests
