"""Laws of the allowlist: no spelling of anything else is ever the allowed host, and nothing inside is ever dialled."""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from labaudit.core.canonical import is_canonical
from labaudit.network.proxy.decisions import Decision, DecisionLog
from labaudit.network.proxy.framing import Body, ChunkedBody, request_body
from labaudit.network.proxy.hello import NeedMore, read_hello
from labaudit.network.proxy.request import head_is_complete, parse_head
from labaudit.network.proxy.rules import Refused, Rules, Target, parse_authority, parse_host
from labaudit.records.schema_registry import validate
from tests.network_lab import client_hello

ALLOWED = Target("api.allowed.test", 443)
RULES = Rules(frozenset({ALLOWED}))
HELLO = client_hello("api.allowed.test")

# Text that comes close to the allowed host: its own characters, what separates hosts, and what other parsers trip over.
near = st.text(st.sampled_from("api.lowedtst:@[]/\\%#?443ſK\0\r\n \tA-_*0x"), max_size=40)
numbers = st.one_of(st.integers(0, 255), st.integers(0, 2**32 - 1))
notations = st.sampled_from(["{}", "0x{:x}", "0{:o}", "0X{:X}", "00{:o}"])
parts = st.builds(str.format, notations, numbers)
number_like = st.lists(parts, min_size=1, max_size=4).map(".".join)


@given(near)
@example("api.allowed.test:443")
@example("API.ALLOWED.TEST.:443")
@example("api.allowed.test:0443")
@example("api.a\u017f.test:443")
def test_what_is_allowed_is_the_allowed_host_and_port_up_to_case_and_a_final_dot(text: str) -> None:
    """'allows exact host:port; letters, digits and hyphens'"""
    try:
        RULES.check(parse_authority(text))
    except Refused:
        return
    host, _, port = text.rpartition(":")
    assert host.isascii()
    assert host.lower().removesuffix(".") == ALLOWED.host
    assert int(port) == ALLOWED.port


@given(st.one_of(near, st.text(max_size=60)))
def test_parsing_a_host_twice_gives_the_same_host(text: str) -> None:
    try:
        host = parse_host(text)
    except Refused:
        return
    assert parse_host(host) == host
    assert set(host) <= set(string.ascii_lowercase + string.digits + "-.")


@given(st.one_of(st.ip_addresses(v=4).map(str), st.integers(0, 2**32).map(str), st.integers(0, 2**32).map(hex),
                 st.integers(0, 2**32).map(lambda n: f"0{n:o}"), st.ip_addresses(v=6).map(str)))  # fmt: skip
def test_no_notation_of_an_address_is_a_name(text: str) -> None:
    """'CONNECT to an IP literal; decimal, hex, octal, short IPs'"""
    with pytest.raises(Refused):
        parse_host(text)


@given(number_like)
def test_a_name_that_the_c_library_takes_for_an_address_is_refused(text: str) -> None:
    """inet_aton accepts more spellings than a strict parser; whatever it accepts must not pass as a name."""
    try:
        socket.inet_aton(text)
    except OSError:
        return
    with pytest.raises(Refused):
        parse_host(text)


@given(st.ip_addresses())
def test_a_checked_address_is_public_by_the_standard_librarys_opinion_too(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    """'requires every answer to be a global address unless the policy names the network'"""
    if RULES.why_not(address) == "":
        inner = getattr(address, "ipv4_mapped", None) or address
        assert inner.is_global
        assert not inner.is_multicast
        assert not inner.is_reserved


@given(st.ip_addresses(v=4))
def test_an_address_wrapped_in_ipv6_is_never_better_than_itself(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    wrapped = [
        ipaddress.IPv6Address((0xFFFF << 32) | number),
        ipaddress.IPv6Address(number),
        ipaddress.IPv6Address((0x64FF9B << 96) | number),
        ipaddress.IPv6Address((0x2002 << 112) | (number << 80)),
        ipaddress.IPv6Address((0xFFFF << 48) | number),
    ]
    assert (RULES.why_not(wrapped[0]) == "") == (RULES.why_not(address) == "")
    assert all(RULES.why_not(other) for other in wrapped[1:])


@given(st.lists(st.ip_addresses().map(str), min_size=1, max_size=5))
def test_one_address_that_is_not_allowed_spoils_the_answer(answers: list[str]) -> None:
    bad = [text for text in answers if RULES.why_not(ipaddress.ip_address(text))]
    try:
        RULES.check_addresses("api.allowed.test", answers)
    except Refused:
        assert bad
    else:
        assert not bad


@given(st.binary(max_size=300))
@example(b"GET http://a.test/ HTTP/1.1\r\n\r\n")
def test_any_bytes_are_a_request_a_refusal_or_too_few(data: bytes) -> None:
    try:
        complete = head_is_complete(data)
        request = parse_head(data.partition(b"\r\n\r\n")[0]) if complete else None
    except Refused as error:
        refusal = error
    else:
        assert request is None or request.head().count(b"\r\n\r\n") == 1
        return
    assert refusal.rule
    assert 400 <= refusal.status < 600


header_values = st.binary(max_size=20).filter(lambda value: b"\r\n" not in value)


header_names = st.sampled_from([b"Host", b"X", b"Content-Length", b"Transfer-Encoding", b"Connection"])


@given(
    st.lists(st.tuples(header_names, header_values), max_size=5), st.sampled_from([b"/", b"/a b", b"/\r", b"", b"/x"])
)
def test_a_head_that_goes_on_is_read_the_same_way_again(headers: list[tuple[bytes, bytes]], path: bytes) -> None:
    """'The proxy and the server behind it must never disagree on where a request ends.'"""
    head = b"POST http://a.test" + path + b" HTTP/1.1"
    for name, value in headers:
        head += b"\r\n" + name + b": " + value
    try:
        request = parse_head(head)
    except Refused:
        return
    sent = request.head()
    assert sent.endswith(b"\r\n\r\n")
    lines = sent[:-4].split(b"\r\n")
    assert not any(b"\n" in line or b"\r" in line or b"\0" in line for line in lines)
    again = parse_head(sent[:-4].replace(b"POST " + request.path, b"POST http://a.test" + request.path, 1))
    assert (again.length, again.target, again.path) == (request.length, request.target, request.path)


@given(st.binary(max_size=400), st.integers(0, 40))
def test_a_damaged_hello_never_shows_a_name_that_is_not_in_its_bytes(noise: bytes, start: int) -> None:
    data = HELLO[:start] + noise + HELLO[start + len(noise) :]
    try:
        hello = read_hello(data)
    except (Refused, NeedMore):
        return
    if hello.name is not None:
        assert hello.name.encode("latin-1") in data


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.binary(max_size=20), st.data())
def test_chunks_end_where_they_end_however_they_are_cut(pieces: list[bytes], after: bytes, data: st.DataObject) -> None:
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    stream, reader, passed = body + after, ChunkedBody(), b""
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        passed += reader.take(stream[:size])
        stream = stream[size:]
    assert reader.done
    assert (passed, reader.rest) == (body, after)


@given(st.integers(0, 50), st.binary(max_size=80))
def test_a_body_by_length_takes_exactly_its_length(length: int, stream: bytes) -> None:
    body: Body = request_body(length)
    assert body.take(stream) + body.rest == stream
    assert body.done == (len(stream) >= length)


@given(st.text(max_size=300), st.text(max_size=300), st.one_of(st.none(), st.integers(0, 65535)))
def test_a_line_of_the_log_is_one_canonical_valid_line(host: str, reason: str, port: int | None) -> None:
    """'Each decision is a network_events.jsonl line'"""
    reader, writer = os.pipe()
    try:
        DecisionLog(writer).write(Decision("block", "bad_host", host, port, sni=host, method=host, reason=reason))
        line = os.read(reader, 1 << 16)
    finally:
        os.close(reader)
        os.close(writer)
    assert line.count(b"\n") == 1
    assert is_canonical(line[:-1])
    assert validate("network_event_v1", json.loads(line)) == []
