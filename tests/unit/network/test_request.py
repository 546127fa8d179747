"""Request heads: what two parsers could read in two ways is refused, and what goes on is written anew."""

from __future__ import annotations

import pytest

from labaudit.network.proxy.request import MAX_HEAD, head_is_complete, parse_head
from labaudit.network.proxy.rules import Refused, Target


def test_a_plain_request_goes_on_in_origin_form_with_our_own_host() -> None:
    request = parse_head(
        b"GET http://Allowed.Test.:8080/a?b=c HTTP/1.1\r\nHost: allowed.test:8080\r\nAccept: */*\r\n"
        b"Proxy-Authorization: Basic c2VjcmV0\r\nConnection: keep-alive, X-Private\r\nX-Private: 1\r\nKeep-Alive: 5"
    )
    assert request.target == Target("allowed.test", 8080)
    assert request.head() == (
        b"GET /a?b=c HTTP/1.1\r\nHost: allowed.test:8080\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    )


def test_a_url_without_a_path_asks_for_the_root() -> None:
    request = parse_head(b"GET http://allowed.test HTTP/1.0")
    assert request.head() == b"GET / HTTP/1.0\r\nHost: allowed.test\r\nConnection: close\r\n\r\n"


def test_connect_names_a_host_and_a_port() -> None:
    request = parse_head(b"CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test")
    assert request.is_connect
    assert request.target == Target("allowed.test", 443)


GET = b"GET http://a.test/ HTTP/1.1\r\n"


@pytest.mark.parametrize(
    ("head", "rule"),
    [
        (b"GET / HTTP/1.1\r\nHost: a.test", "origin_form"),
        (b"GET //a.test/ HTTP/1.1", "origin_form"),
        (b"GET https://a.test/ HTTP/1.1", "scheme"),
        (b"GET ftp://a.test/ HTTP/1.1", "scheme"),
        (b"GET http://user:pw@a.test/ HTTP/1.1", "userinfo"),
        (b"GET http://a.test\\@evil.test/ HTTP/1.1", "userinfo"),
        (b"GET http://a.test?x HTTP/1.1", "bad_request_line"),
        (b"GET http://a.test/x#y HTTP/1.1", "bad_request_line"),
        (b"GET  http://a.test/ HTTP/1.1", "bad_request_line"),
        (b"GET http://a.test/", "bad_request_line"),
        (b"GET http://a.test/ HTTP/1.1 x", "bad_request_line"),
        (b"G\xc3\x8bT http://a.test/ HTTP/1.1", "bad_request_line"),
        (b"GET http://a.test/\x80 HTTP/1.1", "bad_request_line"),
        (b"GET http://a.test/ HTTP/2.0", "bad_version"),
        (b"GET http://a.test/ HTTP/0.9", "bad_version"),
        (b"PRI * HTTP/2.0", "bad_version"),
        (GET + b"Host: b.test", "host_mismatch"),
        (GET + b"Host: a.test:81", "host_mismatch"),
        (GET + b"Host: a.test\r\nHost: a.test", "host_mismatch"),
        (GET + b"Host: a.test, b.test", "bad_host"),
        (GET + b"Upgrade: websocket\r\nConnection: Upgrade", "upgrade"),
        (GET + b" X: folded", "folded_header"),
        (GET + b"X : y", "bad_header"),
        (GET + b": y", "bad_header"),
        (GET + b"nocolon", "bad_header"),
        (GET + b"X: a\x01b", "bad_header"),
        (GET + b"X: a\nY: b", "bad_line_end"),
        (GET + b"X: a\rY: b", "bad_line_end"),
        (GET + b"X: a\0b", "bad_line_end"),
        (GET + b"Content-Length: 1\r\nTransfer-Encoding: chunked", "ambiguous_length"),
        (GET + b"Content-Length: 1\r\nContent-Length: 1", "ambiguous_length"),
        (GET + b"Content-Length: 1, 1", "ambiguous_length"),
        (GET + b"Content-Length: +1", "ambiguous_length"),
        (GET + b"Content-Length: 0x1", "ambiguous_length"),
        (GET + b"Content-Length: -1", "ambiguous_length"),
        (GET + b"Transfer-Encoding: gzip, chunked", "ambiguous_length"),
        (GET + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "ambiguous_length"),
        (GET + b"Transfer-Encoding: xchunked", "ambiguous_length"),
        (GET.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Transfer-Encoding: chunked", "ambiguous_length"),
        (GET + b"Connection: content-length\r\nContent-Length: 5", "ambiguous_length"),
        (GET + b"\r\n".join(b"X%d: y" % number for number in range(101)), "too_many_headers"),
        (b"CONNECT a.test HTTP/1.1", "bad_port"),
        (b"CONNECT a.test:443 HTTP/1.1\r\nHost: b.test:443", "host_mismatch"),
        (b"CONNECT a.test:443 HTTP/1.1\r\nContent-Length: 3", "ambiguous_length"),
        (b"CONNECT a.test:443 HTTP/1.1\r\nTransfer-Encoding: chunked", "ambiguous_length"),
        (b"CONNECT 127.0.0.1:443 HTTP/1.1", "ip_literal"),
        (b"CONNECT http://a.test:443 HTTP/1.1", "ip_literal"),
    ],
)
def test_an_unclear_head_is_refused_by_its_own_rule(head: bytes, rule: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_head(head)
    assert caught.value.rule == rule


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b"\x16\x03\x01\x02\x00", "not_http"),
        (b"\r\nGET http://a.test/ HTTP/1.1\r\n\r\n", "not_http"),
        (b"GET http://a.test/ HTTP/1.1\nHost: a.test\n\n", "bad_line_end"),
        (b"GET http://a.test/" + b"a" * MAX_HEAD, "head_too_large"),
        (b"GET http://a.test/ HTTP/1.1\r\nX: " + b"a" * MAX_HEAD + b"\r\n\r\n", "head_too_large"),
    ],
)
def test_what_can_never_become_a_head_is_refused_at_once(data: bytes, rule: str) -> None:
    with pytest.raises(Refused) as caught:
        head_is_complete(data)
    assert caught.value.rule == rule


def test_a_head_is_complete_with_its_empty_line() -> None:
    assert not head_is_complete(b"")
    assert not head_is_complete(b"GET http://a.test/ HTTP/1.1\r\n")
    assert head_is_complete(b"GET http://a.test/ HTTP/1.1\r\n\r\nbody with a \n bare line feed")
