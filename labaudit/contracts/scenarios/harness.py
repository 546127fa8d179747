"""The program that runs modules inside a sandbox: `trial_input.json` in, `trial_output.json` and hook events out.

A task with steps and an `input_map` is run as a scenario, any other as an atomic task of its `type`. The variant's
bindings are the modules' configuration. What is written is the harness's own report: the runner keeps the clock, the
network and the files, and evaluators judge outside.

    python3 -m scenarios.harness       with both folders in a package; see examples/booking/harness
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import json
import os
import pkgutil
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from .clocks import MachineClock, StepClock, stamp
from .executor import JsonObject, Provenance, RunStep, StepCall, StepFailed, StepResult, execute
from .hook_stream import EVENTS_NAME, HookStream
from .module import Module, step_runner
from .plan import ScenarioInvalid

NAME = "labaudit-scenario-harness"
VERSION = "1.0.0"
ENTRY_POINTS = "labaudit.modules"
STEP_SEMANTICS = "One step of the task's scenario, run by the module of its type; an atomic task is one step."


def main() -> int:
    """Runs the trial that `LABAUDIT_TRIAL_INPUT` names; a task that fails is a report, not an exit code."""
    place = os.environ.get("LABAUDIT_TRIAL_INPUT", "/in/trial_input.json")
    trial = json.loads(Path(place).read_text(encoding="utf-8"))
    run_trial(trial, load_modules())
    return 0


def run_trial(trial: Mapping[str, Any], modules: Mapping[str, Module], clock: StepClock | None = None) -> JsonObject:
    """Runs the trial's task and writes manifest, events and output to its out folder; returns the output."""
    clock = clock or MachineClock()
    paths, control = trial["runtime"]["paths"], trial["runtime"]["control_plane"]
    out = Path(paths["out"])
    _write_json(out / "harness_manifest.json", manifest(control, clock))
    control_file = Path(control["path"]) if control.get("mode") == "file" and control.get("path") else None
    stream = HookStream(out / EVENTS_NAME, trial["ids"], control_file, clock)
    runners = {name: module.runner for name, module in modules.items()}
    provenance = Provenance(NAME, VERSION, trial["bindings"])
    run_step = with_time_limit(step_runner(runners, trial["bindings"]))
    try:
        record = execute(
            trial["task"],
            run_step,
            run_id=trial["ids"]["trial_id"],
            provenance=provenance,
            clock=clock,
            observer=stream,
        )
        output = trial_output(trial, record)
    except (ScenarioInvalid, KeyError, TypeError, AttributeError) as error:
        output = refused_task(trial, error)
    _write_json(out / "trial_output.json", output)
    return output


def trial_output(trial: Mapping[str, Any], record: Mapping[str, Any]) -> JsonObject:
    """A RunRecord as the harness's report; its steps travel in `ext.scenario`."""
    output: JsonObject = {"schema_version": "trial_output_v1", "ids": dict(trial["ids"])}
    if record["status"] == "completed":
        output.update(outcome="success", answer=record["output"])
    else:
        error = {"error_type": "step_failed", "message": f"{record['error']['step']}: {record['error']['message']}"}
        stack = {"stack": record["error"]["stack"]} if "stack" in record["error"] else {}
        output.update(outcome="error", error={**error, **stack})
    steps = record.get("steps")
    if steps is not None:
        done = sum(step["status"] == "completed" for step in steps)
        output["metrics"] = {"steps_completed": done}
        scenario = {"steps": steps, **({"error": record["error"]} if "error" in record else {})}
        output["ext"] = {"scenario": scenario}
    return output


def refused_task(trial: Mapping[str, Any], error: Exception) -> JsonObject:
    """The report on a task that breaks its contract, so that no step was started."""
    message = f"the task cannot be run as it is written: {type(error).__name__}: {error}"
    return {
        "schema_version": "trial_output_v1",
        "ids": dict(trial["ids"]),
        "outcome": "error",
        "error": {"error_type": "task_invalid", "message": message.encode("utf-8", "replace").decode("utf-8")},
    }


def manifest(control: Mapping[str, Any], clock: StepClock) -> JsonObject:
    """What this harness is and which evidence it writes."""
    return {
        "schema_version": "harness_manifest_v1",
        "created_at": stamp(clock.now()),
        "integration_level": "cli_events",
        "harness": {
            "name": NAME,
            "version": VERSION,
            "exec_digest": code_digest(Path(__file__).resolve().parent.parent),
            "entry_command": [Path(sys.executable).name or "python3", *sys.argv[:1]],
            "runtime": {"python": ".".join(str(part) for part in sys.version_info[:3])},
        },
        "step": {"semantics": STEP_SEMANTICS},
        "hooks": {"schema_version": "hook_events_v1", "events_path": EVENTS_NAME},
        **({"control_plane": {"mode": "file", "path": control["path"]}} if control.get("mode") == "file" else {}),
        "tracing": {"mode": "none"},
    }


def code_digest(folder: Path) -> str:
    """One digest over the path and content of every Python file of this harness."""
    hasher = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        hasher.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return "sha256:" + hasher.hexdigest()


def load_modules() -> dict[str, Module]:
    """Modules by task type: those in the folder `modules` beside this package, then installed entry points."""
    found: dict[str, Module] = {}
    package = importlib.import_module("..modules", __package__)
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        module = getattr(importlib.import_module(f"{package.__name__}.{info.name}"), "MODULE", None)
        if module is not None:
            found[module.type] = module
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS):
        module = point.load()
        found.setdefault(module.type, module)
    return found


def with_time_limit(run_step: RunStep) -> RunStep:
    """The same step runner, interrupted by the system's timer at a step's time limit."""

    def limited(call: StepCall) -> StepResult:
        return run_step(call) if call.timeout_ms is None else _run_before(call.timeout_ms, run_step, call)

    return limited


class _TimeIsUp(BaseException):
    """Not an Exception, so that a module's own `except Exception` does not swallow the end of its time."""


def _run_before(timeout_ms: float, run_step: RunStep, call: StepCall) -> StepResult:
    armed = True

    def ring(number: int, frame: FrameType | None) -> None:
        if armed:
            raise _TimeIsUp

    before = signal.signal(signal.SIGALRM, ring)
    # A timer of zero would never ring; a microsecond is the shortest that does.
    signal.setitimer(signal.ITIMER_REAL, max(timeout_ms / 1000, 1e-6))
    try:
        # Two levels: a ring in the moment between the step's end and the disarming is still caught here.
        try:
            return run_step(call)
        finally:
            armed = False
    except _TimeIsUp:
        raise StepFailed(f"stopped at its timeout of {timeout_ms} ms") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _write_json(path: Path, value: JsonObject) -> None:
    # A reader must never see half a file: written beside, then renamed.
    half = path.with_name(f".{path.name}.half")
    half.write_text(json.dumps(value, ensure_ascii=False, allow_nan=False), encoding="utf-8")
    half.replace(path)


if __name__ == "__main__":
    sys.exit(main())
