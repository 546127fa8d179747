"""TLS hellos, made by a real TLS library: the name in them, and what hides or lacks one."""

from __future__ import annotations

import pytest

from labaudit.network.proxy.hello import Hello, NeedMore, check_hello, read_hello
from labaudit.network.proxy.rules import Refused
from tests.network_lab import client_hello

ECH = b"\xfe\x0d\x00\x04\x00\x01\x02\x03"
HELLO = client_hello("allowed.test")


def test_the_name_of_a_real_hello_is_read() -> None:
    assert read_hello(HELLO) == Hello("allowed.test", encrypted=False)
    assert read_hello(client_hello(None)) == Hello(None, encrypted=False)
    assert read_hello(client_hello("allowed.test", extra=ECH)) == Hello("allowed.test", encrypted=True)


def test_a_hello_in_many_records_is_the_same_hello() -> None:
    body = HELLO[5:]
    pieces = [body[start : start + 7] for start in range(0, len(body), 7)]
    spread = b"".join(HELLO[:3] + len(piece).to_bytes(2, "big") + piece for piece in pieces)
    assert read_hello(spread) == Hello("allowed.test", encrypted=False)


def test_every_cut_of_a_hello_asks_for_more() -> None:
    for size in range(len(HELLO)):
        with pytest.raises(NeedMore):
            read_hello(HELLO[:size])


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b"GET / HTTP/1.1\r\n", "not_tls"),
        (b"SSH-2.0-OpenSSH\r\n", "not_tls"),
        (b"\x80\x2e\x01\x03\x01", "not_tls"),
        (b"\x17\x03\x03\x00\x05hello", "not_tls"),
        (b"\x16\x02\x00\x00\x05hello", "not_tls"),
        (b"\x16\x03\x01\x00\x00", "bad_hello"),
        (b"\x16\x03\x01\x00\x04\x02\x00\x00\x00", "not_tls"),
        (b"\x16\x03\x01\x00\x04\x01\xff\xff\xff", "bad_hello"),
        (b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03", "bad_hello"),
        (HELLO[:5] + HELLO[5:9] + b"\xff" * (len(HELLO) - 9), "bad_hello"),
        (client_hello("allowed.test", extra=b"\x00\x00\x00\x00"), "bad_hello"),
    ],
)
def test_what_is_no_hello_is_refused(data: bytes, rule: str) -> None:
    with pytest.raises(Refused) as caught:
        read_hello(data)
    assert caught.value.rule == rule


@pytest.mark.parametrize(
    ("hello", "rule"),
    [
        (Hello(None, False), "no_sni"),
        (Hello("evil.test", False), "sni_mismatch"),
        (Hello("allowed.test.evil.test", False), "sni_mismatch"),
        (Hello("127.0.0.1", False), "sni_mismatch"),
        (Hello("allowed.test\0", False), "sni_mismatch"),
        (Hello("", False), "sni_mismatch"),
        (Hello("allowed.test", True), "encrypted_hello"),
    ],
)
def test_a_hello_must_show_the_tunnels_own_name(hello: Hello, rule: str) -> None:
    with pytest.raises(Refused) as caught:
        check_hello(hello, "allowed.test")
    assert caught.value.rule == rule


def test_the_name_is_compared_in_its_normal_form() -> None:
    check_hello(Hello("Allowed.TEST", False), "allowed.test")


def test_bytes_behind_the_extensions_are_refused() -> None:
    record = client_hello("allowed.test")
    body = record[9:] + b"\0\0\0\x04evil"
    message = record[5:6] + len(body).to_bytes(3, "big") + body
    with pytest.raises(Refused) as caught:
        read_hello(record[:3] + len(message).to_bytes(2, "big") + message)
    assert caught.value.rule == "bad_hello"
