"""Level otel: the same agent, which reports spans to the receiver that the runner offers, and writes no hook events.

The spans go out as OTLP/JSON by the standard library; an OpenTelemetry SDK with its OTLP exporter over HTTP finds the
same endpoint in the same variable and needs no code of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import urllib.request

from arithmetic import calculate, choose, operation, parse, reduced


class Spans:
    """Collects spans of one trace and sends them in one request."""

    def __init__(self, ids):
        self.trace = os.urandom(16).hex()
        self.ids = ids
        self.spans = []

    def add(self, name, started, parent=None, **attributes):
        """One finished span; returns its id."""
        span = {
            "traceId": self.trace,
            "spanId": os.urandom(8).hex(),
            "name": name,
            "kind": 1,
            "startTimeUnixNano": str(started),
            "endTimeUnixNano": str(time.time_ns()),
            "attributes": [{"key": key, "value": {"stringValue": str(value)}} for key, value in attributes.items()],
        }
        if parent is not None:
            span["parentSpanId"] = parent
        self.spans.append(span)
        return span["spanId"]

    def send(self, endpoint):
        """One export request."""
        resource = [{"key": key, "value": {"stringValue": str(value)}} for key, value in self.ids.items()]
        scope = {"scope": {"name": "arithmetic"}, "spans": self.spans}
        body = {"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [scope]}]}
        request = urllib.request.Request(
            endpoint.rstrip("/") + "/v1/traces",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        # A proxy variable must not send loopback traffic elsewhere.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
            answer.read()


def write_manifest(trial, endpoint):
    """harness_manifest.json: tracing instead of hooks."""
    with open(__file__, "rb") as stream:
        digest = "sha256:" + hashlib.sha256(stream.read()).hexdigest()
    manifest = {
        "schema_version": "harness_manifest_v1",
        "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "integration_level": "otel",
        "harness": {"name": "arithmetic", "version": "1", "exec_digest": digest, "entry_command": ["otel.py"]},
        "step": {"semantics": "one span called step"},
        "tracing": {"mode": "otlp", "otlp_endpoint": endpoint},
    }
    with open(os.path.join(trial["runtime"]["paths"]["out"], "harness_manifest.json"), "w") as stream:
        json.dump(manifest, stream)


def solve(spans, terms, precedence):
    """The answer as text."""
    while True:
        started = time.time_ns()
        reply = choose({"terms": terms, "precedence": precedence})
        parent = spans.add("model_call", started, tokens_in=reply["usage"]["tokens_in"])
        if "answer" in reply:
            return reply["answer"]
        started = time.time_ns()
        value = calculate(operation(terms, reply["apply"]))["value"]
        spans.add("tool_call", started, parent, tool="calculate")
        terms = reduced(terms, reply["apply"], value)


def main():
    with open(os.environ["LABAUDIT_TRIAL_INPUT"], encoding="utf-8") as stream:
        trial = json.load(stream)
    endpoint = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
    write_manifest(trial, endpoint)
    spans = Spans(trial["ids"])
    started = time.time_ns()
    answer = solve(spans, parse(trial["task"]["expression"]), trial["bindings"].get("precedence", True))
    spans.add("solve", started, answer=answer)
    spans.send(endpoint)
    output = {"schema_version": "trial_output_v1", "ids": trial["ids"], "outcome": "success", "answer": answer}
    with open(os.path.join(trial["runtime"]["paths"]["out"], "trial_output.json"), "w", encoding="utf-8") as stream:
        json.dump(output, stream)


if __name__ == "__main__":
    main()
