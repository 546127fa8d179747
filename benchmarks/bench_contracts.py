"""A2A packets converted and contract records checked, beside the floor of only reading and writing the same JSON."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from labaudit.contracts.a2a.convert import event_bytes
from labaudit.contracts.a2a.packet import Options
from labaudit.contracts.a2a.stream import convert_lines
from labaudit.contracts.file_check import check_paths

PACKETS = 50_000
RECORDS = 100_000
HERE = Path(__file__).resolve().parent.parent


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    started = time.process_time()
    work()
    return time.process_time() - started


def packets(path: Path) -> None:
    with path.open("w") as stream:
        for number in range(PACKETS):
            packet = {
                "protocol": "a2a",
                "version": "0.2",
                "event_type": "task.requested",
                "timestamp": "2026-02-27T10:00:00Z",
                "agent": {"id": "agent://coordinator", "role": "orchestrator"},
                "task": {"id": f"task-{number}", "status": "requested", "kind": "delegation"},
                "message": {"id": f"msg-{number}", "role": "assistant"},
                "attributes": {"priority": "urgent", "channel": "web"},
            }
            stream.write(json.dumps(packet) + "\n")


def records(path: Path) -> None:
    run = json.loads((HERE / "tests/conformance/contracts/seed_trace_in_a_run/records.json").read_text())
    score = json.loads((HERE / "tests/conformance/contracts/seed_scores/records.json").read_text())[0]
    with path.open("w") as stream:
        for number in range(RECORDS // 2):
            stream.write(json.dumps({**run, "id": f"run-{number}"}) + "\n")
            stream.write(json.dumps({**score, "id": f"score-{number}", "runId": f"run-{number}"}) + "\n")


def read_only(path: Path) -> None:
    with path.open("rb") as stream:
        for line in stream:
            orjson.dumps(orjson.loads(line))


def convert(path: Path, out: Path) -> None:
    with path.open("rb") as stream, out.open("wb") as sink:
        for result in convert_lines(stream, Options()):
            assert result.event is not None
            sink.write(event_bytes(result.event) + b"\n")


def check(path: Path) -> None:
    report: Any = check_paths([path])
    assert (report.errors, sum(report.records.values())) == (0, RECORDS)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        packet_file, record_file = Path(folder, "packets.jsonl"), Path(folder, "records.jsonl")
        packets(packet_file)
        records(record_file)
        rows = []
        for name, path, count, work in (
            ("A2A packets converted", packet_file, PACKETS, lambda: convert(packet_file, Path(folder, "events.jsonl"))),
            ("records checked", record_file, RECORDS, lambda: check(record_file)),
        ):
            floor, ours = cpu(lambda path=path: read_only(path)), cpu(work)
            rows.append((name, count, ours, count / ours, ours / floor))
    print("| what | count | CPU s | per CPU s | ratio to reading and writing the JSON |")
    print("|---|---|---|---|---|")
    for name, count, seconds, rate, ratio in rows:
        print(f"| {name} | {count:,} | {seconds:.2f} | {rate:,.0f} | {ratio:.1f} |")


if __name__ == "__main__":
    main()
