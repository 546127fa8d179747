"""Hook events judged and copied, and spans received, beside the floors of only reading, validating or decoding them.

Memory is the peak of a fresh process for a small and a ten times larger stream: it must not grow with the stream.
`bench_evidence.py --events N` changes the size (1,000,000).
"""

from __future__ import annotations

import argparse
import http.client
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from labaudit.evidence.control_history import control_write
from labaudit.evidence.harness_manifest import HarnessManifest
from labaudit.evidence.hook_collector import HookCollector, HookCounts
from labaudit.evidence.otlp.receiver import OtlpReceiver
from labaudit.evidence.otlp.spans import from_protobuf
from labaudit.evidence.recorder import Recorder
from labaudit.records.schema_registry import fast_validator
from labaudit.store.artifact_store import ArtifactStore
from labaudit.store.event_log import EventLog, LogIdentity

IDS = {"run_id": "run-1", "trial_id": "t-1", "variant_id": "base", "task_id": "k", "repl_idx": 0}
TS = "2026-11-18T09:30:00.000000Z"
CONTROL = control_write(0, "continue")
REQUESTS, SPANS = 200, 100


def manifest() -> HarnessManifest:
    value = {
        "schema_version": "harness_manifest_v1",
        "created_at": TS,
        "integration_level": "cli_events",
        "step": {"semantics": "a step"},
        "hooks": {"schema_version": "hook_events_v1", "events_path": "/out/harness_events.jsonl"},
    }
    return HarnessManifest.from_bytes(orjson.dumps(value))


def write_stream(path: Path, count: int, dump: Callable[[object], bytes] = orjson.dumps) -> None:
    """Steps of five events: start, model call, tool call, end, ack."""
    with path.open("wb") as stream:
        for number in range(count):
            step, place = divmod(number, 5)
            event: dict[str, object] = {"ts": TS, "seq": number, "ids": IDS, "step_index": step}
            if place == 0:
                event |= {"event_type": "agent_step_start"}
            elif place == 1:
                usage = {"tokens_in": 120, "tokens_out": 30}
                event |= {"event_type": "model_call_end", "call_id": f"m{step}", "usage": usage}
                event |= {"model": {"identity": "stand-in"}, "outcome": {"status": "ok"}}
            elif place == 2:
                event |= {"event_type": "tool_call_end", "call_id": f"c{step}", "tool": {"name": "add"}}
                event |= {"outcome": {"status": "ok"}}
            elif place == 3:
                event |= {"event_type": "agent_step_end"}
            else:
                event |= {"event_type": "control_ack", "control_version": CONTROL.control_version}
                event |= {"action_observed": "continue"}
            stream.write(dump(event) + b"\n")


def collect(path: Path) -> None:
    stream = HookCollector().collect(path, manifest(), IDS, [CONTROL])
    assert stream.verdict == "valid", stream.findings[:3]
    assert isinstance(stream.counts, HookCounts)
    assert stream.counts.turn_count == stream.events // 5


def copy(path: Path, folder: Path) -> None:
    log = EventLog(folder / "events.jsonl", LogIdentity(**IDS, attempt=1, resolved_digest="sha256:" + "ab" * 32))
    Recorder(log, ArtifactStore(folder / "artifacts")).copy_hook_events(path)
    log.seal(folder / "events.head")


def parse_only(path: Path) -> None:
    with path.open("rb") as stream:
        for line in stream:
            orjson.loads(line)


def validate_only(path: Path) -> None:
    is_valid = fast_validator("hook_events_v1").is_valid
    with path.open("rb") as stream:
        for line in stream:
            assert is_valid(orjson.loads(line))


def cpu(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def peak_of(what: str, path: Path, folder: Path) -> float:
    """Peak memory in MB of a fresh process that does one thing."""
    command = [sys.executable, __file__, "--peak", what, str(path), str(folder)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def span_request() -> bytes:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for number in range(1, SPANS + 1):
        span = scope.spans.add(trace_id=b"\1" * 16, span_id=number.to_bytes(8, "big"), name="model_call")
        span.attributes.add(key="tokens").value.int_value = number
    return bytes(request.SerializeToString())


def receive(folder: Path, body: bytes) -> None:
    server = OtlpReceiver.start(folder)
    assert server.port is not None
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    for _ in range(REQUESTS):
        connection.request("POST", "/v1/traces", body, {"Content-Type": "application/x-protobuf"})
        assert connection.getresponse().read() == b""
    connection.close()
    assert server.close().spans == REQUESTS * SPANS


def decode_only(body: bytes) -> None:
    for _ in range(REQUESTS):
        from_protobuf(body)


def hook_rows(count: int, folder: Path) -> None:
    path, small, spaced = folder / "events.jsonl", folder / "small.jsonl", folder / "spaced.jsonl"
    write_stream(path, count)
    write_stream(spaced, count, lambda event: json.dumps(event).encode())
    write_stream(small, count // 10)
    print(f"\n{count:,} hook events, {path.stat().st_size / 1e6:.0f} MB\n")
    print("| work | CPU s | events/s | ratio to parsing | peak MB at a tenth | peak MB |")
    print("|---|---|---|---|---|---|")
    (folder / "copied").mkdir()
    floor = cpu(lambda: parse_only(path))
    for name, what, work in (
        ("parse each line (floor)", "", None),
        ("parse and validate by schema (floor)", "", lambda: validate_only(path)),
        ("judge: schema, every rule, all counts", "judge", lambda: collect(path)),
        ("the same, lines as json.dumps writes them", "", lambda: collect(spaced)),
        ("copy to the chained event log", "copy", lambda: copy(path, folder / "copied")),
    ):
        seconds = cpu(work) if work else floor
        peaks = [f"{peak_of(what, file, folder):.0f}" if what else "" for file in (small, path)]
        ratio = f"{seconds / floor:.1f}"
        print(f"| {name} | {seconds:.2f} | {count / seconds:,.0f} | {ratio} | {peaks[0]} | {peaks[1]} |")


def span_rows(folder: Path) -> None:
    body = span_request()
    floor, whole = cpu(lambda: decode_only(body)), cpu(lambda: receive(folder / "spool", body))
    total = REQUESTS * SPANS
    print(f"\n{total:,} spans in {REQUESTS} requests, client and server in one process\n")
    print("| work | CPU s | spans/s | ratio to decoding |\n|---|---|---|---|")
    print(f"| decode protobuf to OTLP/JSON (floor) | {floor:.2f} | {total / floor:,.0f} | 1.0 |")
    print(f"| send, receive, decode, keep | {whole:.2f} | {total / whole:,.0f} | {whole / floor:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--peak", nargs=3)
    options = parser.parse_args()
    if options.peak:
        what, path, folder = options.peak
        if what == "judge":
            collect(Path(path))
        else:
            with tempfile.TemporaryDirectory(dir=folder) as target:
                copy(Path(path), Path(target))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    with tempfile.TemporaryDirectory() as folder:
        hook_rows(options.events, Path(folder))
        span_rows(Path(folder))


if __name__ == "__main__":
    main()
