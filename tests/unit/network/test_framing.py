"""Where bodies end, however the bytes are cut."""

from __future__ import annotations

import pytest

from labaudit.network.proxy.framing import Body, ChunkedBody
from labaudit.network.proxy.response import parse_response
from labaudit.network.proxy.rules import Refused

CHUNKS = b"5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n"


@pytest.mark.parametrize("size", range(1, len(CHUNKS) + 1))
def test_chunks_end_at_the_same_byte_however_they_arrive(size: int) -> None:
    body, data, passed = ChunkedBody(), CHUNKS + b"GET /next", b""
    for start in range(0, len(data), size):
        passed += body.take(data[start : start + size])
    assert body.done
    assert passed == CHUNKS
    assert body.rest == b"GET /next"


def test_a_length_ends_a_body() -> None:
    body = Body(5)
    assert body.take(b"hel") == b"hel"
    assert not body.done
    assert body.take(b"lo, more") == b"lo"
    assert (body.done, body.rest) == (True, b", more")


def test_a_body_without_a_length_takes_all() -> None:
    body = Body(None)
    assert body.take(b"x" * 100) == b"x" * 100
    assert not body.done


@pytest.mark.parametrize(
    "data", [b"\r\n", b"5 ", b"5;", b"5\n", b"x", b"1\r\nab", b"1\r\na\n", b"0\r\nTrailer", b"1" * 16, b"5\rx", b"+1"]
)
def test_unclear_chunks_are_refused(data: bytes) -> None:
    with pytest.raises(Refused) as caught:
        ChunkedBody().take(data)
    assert caught.value.rule == "bad_chunk"


def test_an_answer_is_rewritten_for_one_answer_per_connection() -> None:
    response = parse_response(
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: keep-alive\r\nKeep-Alive: 5\r\nAlt-Svc: h3\r\nX: y", "GET"
    )
    assert response.head == b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX: y\r\nConnection: close\r\n\r\n"
    assert response.body.length == 3
    assert not response.interim


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_some_answers_have_no_body_whatever_they_say(method: str, status: int) -> None:
    response = parse_response(f"HTTP/1.1 {status} X\r\nContent-Length: 10".encode(), method)
    assert response.body.done


def test_an_answer_with_two_lengths_ends_with_its_connection() -> None:
    response = parse_response(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4", "GET")
    assert response.body.length is None


def test_an_interim_answer_is_followed_by_another() -> None:
    assert parse_response(b"HTTP/1.1 100 Continue", "POST").interim


@pytest.mark.parametrize("head", [b"ICY 200 OK", b"HTTP/2 200", b"HTTP/1.1 999 X", b"", b"HTTP/1.1 101 Switch"])
def test_what_is_no_plain_answer_is_refused(head: bytes) -> None:
    with pytest.raises(Refused) as caught:
        parse_response(head, "GET")
    assert caught.value.status == 502
