"""The example of each level, run by the real runner in a real sandbox without network, is observed at that level."""

from __future__ import annotations

import importlib.metadata
import json
import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from labaudit.evidence.observe import observe_trial
from labaudit.evidence.trial_facts import TrialFacts
from labaudit.runner.run_start import read_resolved
from labaudit.sdk.__main__ import NAME, copy_sdk, sdk_files
from tests.experiments import document, only_trial, run, write_experiment

EXAMPLES = Path(__file__).parents[3] / "examples" / "levels"
REPLAY = {
    "cli_basic": "none",
    "cli_events": "best_effort",
    "otel": "best_effort",
    "sdk_control": "checkpointed",
    "sdk_full": "strict",
}
ENGINES = [
    "process",
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.xdist_group("docker")]),
]


def small_copy(level: str, folder: Path) -> Path:
    """The example with one task and no variant: a level shows in a single trial."""
    shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
    copy_sdk(str(folder / "harness"))
    path = folder / "experiment.yaml"
    value = yaml.safe_load((folder / f"{level}.yaml").read_text())
    lines = (folder / "tasks.jsonl").read_text().splitlines()
    (folder / "tasks.jsonl").write_text(next(line for line in lines if '"mixed"' in line) + "\n")
    path.write_text(yaml.safe_dump({**value, "variant_plan": []}))
    return path


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("level", sorted(REPLAY))
def test_each_example_is_observed_at_exactly_its_level(level: str, engine: str, tmp_path: Path) -> None:
    result = run(tmp_path, small_copy(level, tmp_path), engine=engine, workers=1)
    trial, record = only_trial(result.run)
    assert (record.status, record.outcome) == ("completed", "success")
    assert document(trial.trial_output)["answer"] == "14"
    found = result.grades.integration_level
    assert (found.expected, found.observed) == (level, level)
    assert found.claimed == (None if level == "cli_basic" else level)
    assert result.grades.replay.value == REPLAY[level]
    expected = {"cli_basic": "output", "otel": "turn"}.get(level, "step")
    assert result.grades.interpretability.value == expected
    if engine != "process":
        assert result.grades.isolation.value == "sealed"
    resolved, _ = read_resolved(result.run)
    assert observe_trial(trial, resolved, TrialFacts.from_record(record)).level.observed == level


def test_a_copy_of_the_sdk_is_the_sdk(tmp_path: Path) -> None:
    copy = Path(copy_sdk(str(tmp_path)))
    assert copy.name == NAME
    assert {path.name: path.read_bytes() for path in copy.glob("*.py")} == sdk_files()


STOCK = """
import json, os, sys, time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "vendor"))
given = json.load(open(os.environ["LABAUDIT_TRIAL_INPUT"]))
out = given["runtime"]["paths"]["out"]
manifest = {
    "schema_version": "harness_manifest_v1", "created_at": "2026-11-18T09:30:00Z", "integration_level": "otel",
    "harness": {"name": "stock", "exec_digest": "sha256:" + "0" * 64}, "step": {"semantics": "a span called step"},
    "tracing": {"mode": "otlp", "otlp_endpoint": os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]},
}
json.dump(manifest, open(out + "/harness_manifest.json", "w"))
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("harness")
for number in range(5):
    with tracer.start_as_current_span("step", attributes={"number": number}):
        with tracer.start_as_current_span("model_call"):
            pass
provider.shutdown()
result = {"schema_version": "trial_output_v1", "ids": given["ids"], "outcome": "success", "answer": "done"}
json.dump(result, open(out + "/trial_output.json", "w"))
"""


def vendor(folder: Path, name: str, seen: set[str] | None = None) -> None:
    """Copies an installed distribution and all that it requires to `folder`."""
    seen = set() if seen is None else seen
    name = re.split(r"[^A-Za-z0-9._-]", name)[0].lower().replace("_", "-")
    if name in seen:
        return
    seen.add(name)
    try:
        found = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return
    for file in found.files or ():
        source = Path(str(found.locate_file(file)))
        if ".." not in file.parts and "__pycache__" not in file.parts and source.is_file():
            target = folder / str(file)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    for requirement in found.requires or ():
        if "extra ==" not in requirement or "requests" in requirement:
            vendor(folder, requirement, seen)


@pytest.mark.bubblewrap
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the bundled image has Python 3.11, as the vendored wheels")
def test_the_stock_exporter_in_a_trial_without_network_delivers_its_spans(tmp_path: Path) -> None:
    harness = {"integration_level": "otel", "tracing": {"mode": "otlp"}}
    write_experiment(
        tmp_path, agent=STOCK, tasks=({"id": "a", "expected": "done"},), variants=(), harness=harness,
        runtime={"network": {"mode": "none"}, "timeouts": {"trial_seconds": 60}},
    )  # fmt: skip
    vendor(tmp_path / "harness" / "vendor", "opentelemetry-exporter-otlp-proto-http")
    result = run(tmp_path, engine="bubblewrap", workers=1)
    trial, record = only_trial(result.run)
    assert record.outcome == "success", trial.stderr.read_text()
    assert document(trial.state_inventory)["network"]["mode_effective"] == "none"
    assert result.grades.integration_level.observed == "otel"
    (entry,) = document(trial.trace_manifest)["traces"]
    assert entry["span_count"] == 10
    lines = result.run.artifacts.get(entry["artifact_ref"]).splitlines()
    names = [
        span["name"]
        for line in lines
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    assert sorted(names) == ["model_call"] * 5 + ["step"] * 5
