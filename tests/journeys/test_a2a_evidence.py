"""A harness that leaves A2A packets: converted, stored, checked again, shown and attested with their limits."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
HARNESS = '''
import json, os
from pathlib import Path

trial = json.loads(Path(os.environ["LABAUDIT_TRIAL_INPUT"]).read_text())
out = Path(trial["runtime"]["paths"]["out"])
packets = [
    {"protocol": "a2a", "version": "0.2", "event_type": "task.requested", "agent": {"id": "agent://c"},
     "task": {"id": "t-1", "kind": "delegation"}, "message": {"id": "m-1"}, "timestamp": "2026-01-01T00:00:00Z"},
    {"protocol": "a2a", "version": "0.2", "event_type": "task.updated", "agent": {"id": "agent://w"},
     "task": {"id": "t-1", "kind": "delegation"}, "timestamp": "2026-01-01T00:00:01Z"},
]
with (out / "a2a_packets.jsonl").open("w") as stream:
    stream.write("".join(json.dumps(packet) + "\\n" for packet in packets) + "{ broken\\n")
output = {"schema_version": "trial_output_v1", "ids": trial["ids"], "outcome": "success", "answer": "done"}
(out / "trial_output.json").write_text(json.dumps(output))
'''
EXPERIMENT = """
version: "0.3"
experiment: {id: handoffs}
dataset: {path: tasks.jsonl}
baseline: {id: base, bindings: {}}
runtime:
  engine: process
  harness: {command: [python3, /harness/agent.py], source: harness/}
evaluators: [{id: exact, type: exact_match, expected: expected, metric: success}]
metrics: [{name: success, type: binary, direction: higher, source: "evaluator:exact"}]
analysis_plan: {primary: [success]}
"""


def labaudit(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "labaudit", *map(str, arguments)]
    return subprocess.run(command, cwd=TOP, capture_output=True, text=True, timeout=240, check=False)


def test_packets_become_evidence_in_visibility_language(tmp_path: Path) -> None:
    (tmp_path / "harness").mkdir()
    (tmp_path / "harness" / "agent.py").write_text(HARNESS)
    (tmp_path / "experiment.yaml").write_text(EXPERIMENT)
    (tmp_path / "tasks.jsonl").write_text('{"id": "one", "expected": "done"}\n')
    done = labaudit("run", tmp_path / "experiment.yaml", "--lab-dir", tmp_path / "lab", "--json")
    assert done.returncode == 0, done.stderr
    run = Path(json.loads(done.stdout)["path"])
    (trial,) = (run / "trials").iterdir()
    events = [json.loads(line) for line in (trial / "a2a_events.jsonl").read_text().splitlines()]
    assert [event["payload"]["handoff"]["visible"] for event in events] == [True, False]

    checked = labaudit("a2a", "check", trial, "--json")
    report = json.loads(checked.stdout)
    assert report["changed_events"] == []
    assert {row["id"]: row["status"] for row in report["matrix"]}["N7"] == "held"

    bundle = json.loads((run / "attestations" / "evidence.sigstore.json").read_text())
    statement = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
    attributes = {item["attribute"]: item for item in statement["predicate"]["attributes"]}
    limits = attributes["CONTRACT_A2A_EVENTS"]["conditions"]["limits"]
    assert all(row["may_imply"] and row["must_not_imply"] for row in limits)

    assert labaudit("verify", run, "--key", tmp_path / "lab" / "keys" / "labaudit.pub").returncode == 0
    assert labaudit("site", run, "--out", tmp_path / "site", "--lab-dir", tmp_path / "lab").returncode == 0
    page = (tmp_path / "site" / "contracts.html").read_text(encoding="utf-8").lower()
    assert "may imply" in page
    assert "must not imply" in page
    for claim in ("delegation verified", "route resolved"):
        assert not [path for path in (tmp_path / "site").rglob("*.html") if claim in path.read_text().lower()]
