"""The OTLP receiver takes in what exporters send, answers in their form, and stays within its bounds."""

from __future__ import annotations

import gzip
import http.client
import json
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from labaudit.core.redaction import Redactor
from labaudit.errors import BadInput
from labaudit.evidence.otlp import receiver as receiver_module
from labaudit.evidence.otlp.receiver import OtlpReceiver
from labaudit.evidence.otlp.spans import count_in_file, from_protobuf

TRACE, SPAN = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174"
PROTOBUF = {"Content-Type": "application/x-protobuf"}
JSON = {"Content-Type": "application/json"}


def document(*names: str, trace: str = TRACE) -> dict[str, Any]:
    spans = [{"traceId": trace, "spanId": SPAN, "name": name, "kind": 1} for name in names]
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "t"}, "spans": spans}]}]}


def protobuf(*names: str, trace: str = TRACE) -> bytes:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for name in names:
        scope.spans.add(trace_id=bytes.fromhex(trace), span_id=bytes.fromhex(SPAN), name=name)
    return bytes(request.SerializeToString())


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=5)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[OtlpReceiver]:
    server = OtlpReceiver.start(
        tmp_path / "spool", redactor=Redactor((), {"K": "hunter22"}), max_body=100_000, max_total=300_000
    )
    yield server
    server.close()


def send(receiver: OtlpReceiver, body: bytes, headers: dict[str, str], path: str = "/v1/traces") -> tuple[int, bytes]:
    assert receiver.port is not None
    connection = http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=5)
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, data


def test_protobuf_and_json_arrive_as_the_same_lines(receiver: OtlpReceiver) -> None:
    status, answer = send(receiver, protobuf("a", "b"), PROTOBUF)
    assert status == 200
    assert not ExportTraceServiceResponse.FromString(answer).HasField("partial_success")
    assert send(receiver, json.dumps(document("a", "b")).encode(), JSON) == (200, b"{}")
    got = receiver.close()
    assert (got.spans, got.requests, got.refused_spans, got.problems) == (4, 2, 0, ())
    assert got.path is not None
    first, second = (json.loads(line) for line in got.path.read_bytes().splitlines())
    spans = [doc["resourceSpans"][0]["scopeSpans"][0]["spans"] for doc in (first, second)]
    assert [(s["traceId"], s["spanId"], s["name"]) for s in spans[0]] == [(TRACE, SPAN, "a"), (TRACE, SPAN, "b")]
    assert [s["traceId"] for s in spans[1]] == [TRACE, TRACE]
    assert count_in_file(got.path.read_bytes(), "otlp_jsonl") == 4


def test_gzip_and_chunks_are_undone(receiver: OtlpReceiver) -> None:
    packed = gzip.compress(protobuf("a"), mtime=0)
    assert send(receiver, packed, PROTOBUF | {"Content-Encoding": "gzip"})[0] == 200
    assert receiver.port is not None
    connection = http.client.HTTPConnection("127.0.0.1", receiver.port, timeout=5)
    pieces = iter([packed[:10], packed[10:]])
    connection.request("POST", "/v1/traces", pieces, PROTOBUF | {"Content-Encoding": "gzip"}, encode_chunked=True)
    assert connection.getresponse().status == 200
    assert receiver.close().spans == 2


def test_spans_without_an_id_are_refused_and_the_sender_is_told(receiver: OtlpReceiver) -> None:
    status, answer = send(receiver, protobuf("a", trace="00" * 16), PROTOBUF)
    assert status == 200
    assert ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans == 1
    bad = document("x", trace="zz")
    assert json.loads(send(receiver, json.dumps(bad).encode(), JSON)[1])["partialSuccess"]["rejectedSpans"] == "1"
    got = receiver.close()
    assert (got.spans, got.refused_spans, got.path) == (0, 2, None)


@pytest.mark.parametrize(
    ("body", "headers", "path", "status"),
    [
        (b"\xff\xff\xff", PROTOBUF, "/v1/traces", 400),
        (b"{half", JSON, "/v1/traces", 400),
        (b"[]", JSON, "/v1/traces", 400),
        (b'{"resourceSpans":7}', JSON, "/v1/traces", 400),
        (b'{"resourceSpans":[{"scopeSpans":[{"spans":3}]}]}', JSON, "/v1/traces", 400),
        (b"x", {"Content-Type": "text/plain"}, "/v1/traces", 415),
        (b"x", PROTOBUF | {"Content-Encoding": "br"}, "/v1/traces", 415),
        (b"not gzip", PROTOBUF | {"Content-Encoding": "gzip"}, "/v1/traces", 400),
        (gzip.compress(b"\0" * 50_000_000, mtime=0), PROTOBUF | {"Content-Encoding": "gzip"}, "/v1/traces", 413),
        (gzip.compress(protobuf("a"), mtime=0)[:-9], PROTOBUF | {"Content-Encoding": "gzip"}, "/v1/traces", 400),
        (b"\0" * 100_001, PROTOBUF, "/v1/traces", 413),
        (b"{}", JSON, "/v1/metrics", 404),
    ],
)
def test_what_is_no_export_is_refused_with_its_status(
    receiver: OtlpReceiver, body: bytes, headers: dict[str, str], path: str, status: int
) -> None:
    assert send(receiver, body, headers, path)[0] == status
    assert send(receiver, protobuf("still alive"), PROTOBUF)[0] == 200
    got = receiver.close()
    assert got.spans == 1
    assert len(got.problems) == 1


def test_a_trial_that_sends_without_end_fills_no_disk(receiver: OtlpReceiver) -> None:
    body = protobuf("n" * 90_000)
    statuses = [send(receiver, body, PROTOBUF)[0] for _ in range(30)]
    assert statuses == [200] * 3 + [413] * 27
    got = receiver.close()
    assert got.spans == 3
    assert got.path is not None
    assert got.path.stat().st_size < 300_000
    assert len(got.problems) == receiver_module.MAX_PROBLEMS + 1


def test_secrets_do_not_reach_the_spool(receiver: OtlpReceiver) -> None:
    send(receiver, protobuf("token hunter22"), PROTOBUF)
    got = receiver.close()
    assert got.redaction_applied
    assert got.path is not None
    assert b"hunter22" not in got.path.read_bytes()


def test_a_unix_socket_serves_many_senders_at_once(tmp_path: Path) -> None:
    path = tmp_path / "otlp.sock"
    server = OtlpReceiver.start(tmp_path / "spool", socket=path)
    assert server.port is None
    failures: list[int] = []

    def sender() -> None:
        connection = UnixConnection(path)
        for _ in range(20):
            connection.request("POST", "/v1/traces", protobuf("a"), PROTOBUF)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                failures.append(answer.status)

    threads = [threading.Thread(target=sender) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    got = server.close()
    assert failures == []
    assert (got.spans, got.requests) == (160, 160)
    assert not path.exists()
    assert server.close() is got


def test_closing_does_not_wait_for_idle_connections(tmp_path: Path) -> None:
    server = OtlpReceiver.start(tmp_path / "spool")
    assert server.port is not None
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(3)]
    idle[0].sendall(b"POST /v1/traces HTTP/1.1\r\nContent-Le")
    done = threading.Thread(target=server.close)
    done.start()
    done.join(timeout=5)
    assert not done.is_alive()
    for connection in idle:
        connection.close()


EXPORTER = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

compression = Compression.Gzip if sys.argv[1] == "gzip" else Compression.NoCompression
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(compression=compression)))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("harness")
with tracer.start_as_current_span("agent_step") as step:
    with tracer.start_as_current_span("model_call", attributes={"tokens": 5}):
        pass
    step.add_event("done")
provider.shutdown()
"""


@pytest.mark.parametrize("compression", ["plain", "gzip"])
def test_the_stock_exporter_delivers_its_spans(tmp_path: Path, compression: str) -> None:
    server = OtlpReceiver.start(tmp_path / "spool")
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.port}"}
    subprocess.run([sys.executable, "-c", EXPORTER, compression], env=endpoint, check=True, timeout=60)
    got = server.close()
    assert got.spans == 2
    assert got.problems == ()
    assert got.path is not None
    names = [
        span["name"]
        for line in got.path.read_bytes().splitlines()
        for span in json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    ]
    assert sorted(names) == ["agent_step", "model_call"]


def test_a_link_to_another_span_keeps_its_ids_readable() -> None:
    request = ExportTraceServiceRequest()
    span = (
        request.resource_spans.add()
        .scope_spans.add()
        .spans.add(
            trace_id=bytes.fromhex(TRACE), span_id=bytes.fromhex(SPAN), parent_span_id=bytes.fromhex(SPAN), name="n"
        )
    )
    span.links.add(trace_id=bytes.fromhex(TRACE), span_id=bytes.fromhex(SPAN))
    line = json.loads(from_protobuf(request.SerializeToString()).line)
    stored = line["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert stored["parentSpanId"] == SPAN
    assert stored["links"][0] == {"traceId": TRACE, "spanId": SPAN}


def field(number: int, content: bytes) -> bytes:
    """A length-delimited protobuf field."""
    length, size = len(content), b""
    while True:
        length, low = length >> 7, length & 127
        size += bytes([low | (128 if length else 0)])
        if not length:
            return bytes([number << 3 | 2]) + size + content


EMPTY_SPANS = field(1, field(2, field(2, b"") * 1_000_000))
EMPTY_ATTRIBUTES = field(1, field(2, field(2, field(9, b"") * 1_000_000)))


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (EMPTY_SPANS, PROTOBUF),
        (EMPTY_ATTRIBUTES, PROTOBUF),
        (b'{"resourceSpans":[' + b"{}," * 1_000_000 + b"{}]}", JSON),
    ],
    ids=["spans", "attributes", "objects"],
)
def test_many_tiny_parts_do_not_become_a_mountain_of_objects(
    tmp_path: Path, body: bytes, headers: dict[str, str]
) -> None:
    server = OtlpReceiver.start(tmp_path / "spool")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    assert send(server, body, headers)[0] == 413
    assert time.process_time() - started < 2
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 60
    assert server.close().spans == 0


def test_a_large_honest_request_is_taken(tmp_path: Path) -> None:
    server = OtlpReceiver.start(tmp_path / "spool")
    assert send(server, protobuf(*["n" * 500] * 5000), PROTOBUF)[0] == 200
    assert server.close().spans == 5000


@pytest.mark.parametrize("tail", [b"\x0a\xff\xff\xff\xff\x0f", b"\xff" * 20, b"\x0b", b"\x0d\x00"])
def test_broken_framing_of_a_large_request_is_no_export(tail: bytes) -> None:
    with pytest.raises(BadInput):
        from_protobuf(protobuf("n" * 200_000) + tail)
