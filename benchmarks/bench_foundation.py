"""Event log, chain and tree, hook validation, artifact store and start-up, as ratios to floors in the same run."""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from labaudit.core.digest import Digest
from labaudit.records.schema_registry import fast_validator
from labaudit.store.artifact_store import ArtifactStore
from labaudit.store.event_log import EventLog, LogIdentity, check_chain

IDENTITY = LogIdentity("run-20261118T070000Z-00000000", "base.task.r0-00000000", "base", "task", 0, 1, Digest.of(b"x"))
REFERENCE = "artifact://sha256/" + "0" * 64
EVENTS = 100_000
GIGABYTE = 1 << 30


def best_of(times: int, work: Callable[[], object]) -> float:
    """Least CPU-bound wall time of a few runs: the one least disturbed by neighbours."""
    spans = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        spans.append(time.perf_counter() - started)
    return min(spans)


def append_events(path: Path) -> None:
    path.unlink(missing_ok=True)
    log = EventLog(path, IDENTITY)
    for number in range(EVENTS):
        log.append("agent.step.end", step_index=number, payload_ref=REFERENCE)
    log.close()


def write_plainly(path: Path, lines: list[bytes]) -> None:
    """The floor of appending: hash each line and write them all."""
    with path.open("wb") as stream:
        for line in lines:
            hashlib.sha256(line).digest()
            stream.write(line + b"\n")
        os.fsync(stream.fileno())


def event_rows(folder: Path) -> list[tuple[str, str, str]]:
    path = folder / "events.jsonl"
    append = best_of(3, lambda: append_events(path))
    lines = path.read_bytes().splitlines()
    floor = best_of(3, lambda: write_plainly(folder / "plain", lines))
    check = best_of(3, lambda: check_chain(path, IDENTITY, round_trip=False))
    full = best_of(3, lambda: check_chain(path, IDENTITY, round_trip=True))
    size = sum(map(len, lines)) // len(lines)
    return [
        (f"append, {size}-byte events", f"{EVENTS / append:,.0f}/s", f"{append / floor:.1f}x hash + write"),
        ("chain + tree over stored bytes", f"{EVENTS / check:,.0f}/s", f"{check / floor:.1f}x hash + write"),
        ("chain + tree + round trip of each line", f"{EVENTS / full:,.0f}/s", f"{full / floor:.1f}x hash + write"),
    ]


def hook_rows() -> list[tuple[str, str, str]]:
    event = {
        "event_type": "model_call_end",
        "ts": "2026-11-18T07:00:00Z",
        "seq": 3,
        "ids": {"run_id": "r", "trial_id": "t", "variant_id": "v", "task_id": "k", "repl_idx": 0},
        "step_index": 0,
        "call_id": "c1",
        "usage": {"tokens_in": 10, "tokens_out": 20},
        "outcome": {"status": "ok"},
    }
    line = orjson.dumps(event)
    is_valid = fast_validator("hook_events_v1").is_valid
    count = 20_000

    def check() -> None:
        for _ in range(count):
            assert is_valid(orjson.loads(line))

    span = best_of(3, check)
    floor = best_of(3, lambda: [orjson.loads(line) for _ in range(count)])
    return [("hook lines parsed and validated", f"{count / span:,.0f}/s", f"{span / floor:.1f}x parsing alone")]


def startup_rows() -> list[tuple[str, str, str]]:
    def run(*arguments: str) -> float:
        return best_of(7, lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True))

    ours, floor = run("-m", "labaudit", "--version"), run("-c", "import click")
    return [("labaudit --version", f"{ours * 1000:.0f} ms", f'{ours / floor:.2f}x python -c "import click"')]


def plain_copy(source: Path, target: Path) -> None:
    """The floor of `put`: read, hash, write and fsync, done plainly."""
    hasher = hashlib.sha256()
    with source.open("rb", buffering=0) as reader, target.open("wb", buffering=0) as writer:
        while chunk := reader.read(1 << 20):
            hasher.update(chunk)
            writer.write(chunk)
        os.fsync(writer.fileno())
    target.unlink()


def put_rows(folder: Path) -> list[tuple[str, str, str]]:
    source = folder / "large"
    with source.open("wb") as stream:
        block = os.urandom(1 << 20)
        for number in range(GIGABYTE >> 20):
            stream.write(number.to_bytes(8, "big") + block[8:])
    store = ArtifactStore(folder / "artifacts")

    def put() -> None:
        with source.open("rb", buffering=0) as stream:
            store.path(store.put(stream)).unlink()  # type: ignore[arg-type]

    spans = [(best_of(1, lambda: plain_copy(source, folder / "copy")), best_of(1, put)) for _ in range(3)]
    floor, ours = min(span[0] for span in spans), min(span[1] for span in spans)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return [("artifact put, 1 GiB", f"{ours:.2f} s", f"{ours / floor:.2f}x plain copy; peak {memory} MiB")]


def main() -> None:
    print("| what | figure | ratio in the same run |\n|---|--:|---|")
    with tempfile.TemporaryDirectory() as name:
        for row in (*startup_rows(), *event_rows(Path(name)), *hook_rows(), *put_rows(Path(name))):
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
