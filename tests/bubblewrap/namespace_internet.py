"""An internet inside namespaces of the test: runs as a script in a network and mount namespace that was just made.

A name server of its own answers on port 53, an origin listens on loopback, and a bubblewrap trial with an allowlist
asks for names that lead where no name may lead. Prints what the trial was told, what the proxy logged, what arrived,
and how often each name was asked for.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import struct
import sys
import threading
from pathlib import Path

from labaudit.engines.bubblewrap.engine import BubblewrapEngine
from labaudit.engines.protocol import NetworkSpec
from tests.engine_contract import opened
from tests.network_lab import Origin

AGENT = Path(__file__).parents[1] / "allowlist_agent.py"

# What the name server says: one answer per question, in turn; an answer may be several addresses.
ANSWERS: dict[str, list[list[str]]] = {
    "open.test": [["127.0.0.1"]],
    "b47-loopback.test": [["127.0.0.5"]],
    "b47-six.test": [["::1"]],
    "b48-metadata.test": [["169.254.169.254"]],
    "b48-link-local.test": [["fe80::1"]],
    "b49-cgnat.test": [["100.64.0.1"]],
    "b49-nat64.test": [["64:ff9b::7f00:1"]],
    "b49-6to4.test": [["2002:7f00:1::1"]],
    "b25-mapped.test": [["::ffff:127.0.0.5"]],
    "private.test": [["10.0.0.1"]],
    "b50-mixed.test": [["127.0.0.1", "10.0.0.1"]],
    "b50-rebinding.test": [["127.0.0.1"], ["127.0.0.5"]],
    "nothing.test": [[]],
}
asked: dict[str, int] = {}


def answer(question: bytes) -> bytes:
    labels, position = [], 12
    while size := question[position]:
        labels.append(question[position + 1 : position + 1 + size].decode().lower())
        position += 1 + size
    name, end = ".".join(labels), position + 5
    kind = struct.unpack(">H", question[position + 1 : position + 3])[0]
    turns = ANSWERS.get(name, [[]])
    if kind == 1:
        asked[name] = asked.get(name, 0) + 1
    addresses = [ipaddress.ip_address(text) for text in turns[min(max(asked.get(name, 1), 1), len(turns)) - 1]]
    wanted = [address.packed for address in addresses if (address.version == 4) == (kind == 1)]
    if kind not in (1, 28):
        wanted = []
    head = question[:2] + struct.pack(">HHHHH", 0x8180, 1, len(wanted), 0, 0)
    rows = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(data)) + data for data in wanted)
    return head + question[12:end] + rows


def serve_names() -> None:
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))

    def serve() -> None:
        while True:
            question, peer = server.recvfrom(512)
            server.sendto(answer(question), peer)

    threading.Thread(target=serve, daemon=True).start()


def main() -> None:
    serve_names()
    with Origin() as origin, BubblewrapEngine.detect() as engine:
        names = [*ANSWERS, "b50-rebinding.test"]
        tries = [
            {"id": f"{number} {name}", "do": "raw", "words": f"GET http://{name}:{origin.port}/ HTTP/1.1\r\n\r\n"}
            for number, name in enumerate(names)
        ]
        hosts = tuple(f"{name}:{origin.port}" for name in ANSWERS)
        network = NetworkSpec("allowlist_enforced", hosts, ("127.0.0.1/32",))
        with opened(engine, "python3", "/in/agent.py", "/in/tries.json", network=network, timeout_s=60.0) as sandbox:
            Path(sandbox.host.input, "agent.py").write_text(AGENT.read_text())
            Path(sandbox.host.input, "tries.json").write_text(json.dumps(tries))
            sandbox.start()
            result = sandbox.wait()
        told = json.loads(result.stdout.rendered())
        events = [json.loads(line) for line in result.network.events]
        hosts_seen = [data.partition(b"Host: ")[2].partition(b":")[0].decode() for data in origin.received]
    print(json.dumps({"told": told, "events": events, "arrived": hosts_seen, "asked": asked}))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    main()
