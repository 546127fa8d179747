"""The agent of the allowlist tests: a program of the standard library that runs inside a sandbox.

One argument: a JSON file with a list of tries. Prints one JSON object: the id of each try and what came of it.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import sys
import urllib.error
import urllib.request
from typing import Any

PATIENCE = 3.0
FOUND = {name.lower(): os.environ.get(name, "") for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")}
PROXY = ("127.0.0.1", 3128)
# the tests' internet may be named localhost, which clients would not ask a proxy for
for name in ("NO_PROXY", "no_proxy"):
    os.environ.pop(name, None)


def read_all(line: socket.socket) -> bytes:
    data = b""
    try:
        while more := line.recv(65536):
            data += more
    except OSError:
        pass
    return data


def summary(answer: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {"status": None, "rule": None, "text": answer[-200:].decode("latin-1")}
    if answer.startswith(b"HTTP/1."):
        found["status"] = int(answer.split(b" ", 2)[1])
    if b"X-Labaudit-Rule: " in answer:
        found["rule"] = answer.split(b"X-Labaudit-Rule: ", 1)[1].split(b"\r\n", 1)[0].decode()
    return found


def raw(given: dict[str, Any]) -> dict[str, Any]:
    """Words to the proxy as they are; `then` (hexadecimal) is said after its first head."""
    with socket.create_connection(PROXY, PATIENCE) as line:
        line.sendall(given["words"].encode("latin-1"))
        if "then" not in given:
            return summary(read_all(line))
        head = b""
        while not head.endswith(b"\r\n\r\n") and (more := line.recv(1)):
            head += more
        line.sendall(bytes.fromhex(given["then"]))
        return summary(head) | {"after": read_all(line).hex()}


def fetch(given: dict[str, Any]) -> dict[str, Any]:
    """The standard client, led by the environment alone, or (`bypass`) with its proxies taken away."""
    handlers: list[Any] = [urllib.request.ProxyHandler({})] if given.get("bypass") else []
    if "ca" in given:
        handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cadata=given["ca"])))
    asked = urllib.request.Request(given["url"], headers=given.get("headers", {}))
    try:
        with urllib.request.build_opener(*handlers).open(asked, timeout=PATIENCE) as answer:
            return {"status": answer.status, "text": answer.read(200).decode()}
    except urllib.error.HTTPError as error:
        return {"status": error.code, "rule": error.headers.get("X-Labaudit-Rule"), "text": error.read(200).decode()}


def tcp(given: dict[str, Any]) -> dict[str, Any]:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as line:
        line.settimeout(PATIENCE)
        if given.get("source_route"):
            route = bytes([131, 7, 4]) + socket.inet_aton(given["address"]) + bytes(1)
            line.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, route)
        line.connect((given["address"], given["port"]))
        line.sendall(given["token"].encode())
        return {"text": "reached"}


def udp(given: dict[str, Any]) -> dict[str, Any]:
    family, kind, _, _, where = socket.getaddrinfo(given["address"], given["port"], type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as line:
        line.settimeout(PATIENCE)
        line.connect(where)
        line.send(given["token"].encode())
        return {"text": "reached " + line.recv(100).decode("latin-1")}


def icmp(given: dict[str, Any]) -> dict[str, Any]:
    """Without rights there is still the ping socket; where even that is refused, so be it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as line:
        line.settimeout(PATIENCE)
        line.sendto(b"\x08\x00\xf7\xff\x00\x00\x00\x00", (given["address"], 0))
        return {"text": "reached " + repr(line.recvfrom(100))}


def resolve(given: dict[str, Any]) -> dict[str, Any]:
    return {"text": "resolved " + str(socket.getaddrinfo(given["host"], 80)[0][4])}


def variables(given: dict[str, Any]) -> dict[str, Any]:
    return dict(FOUND)


DEEDS = {deed.__name__: deed for deed in (raw, fetch, tcp, udp, icmp, resolve, variables)}


def main(tries: list[dict[str, Any]]) -> None:
    told: dict[str, Any] = {}
    for given in tries:
        try:
            told[given["id"]] = DEEDS[given["do"]](given)
        except Exception as error:
            told[given["id"]] = {"error": type(error).__name__, "text": str(error)[:200], "status": None, "rule": None}
    print(json.dumps(told))


if __name__ == "__main__":
    with open(sys.argv[1]) as plan:
        main(json.load(plan))
