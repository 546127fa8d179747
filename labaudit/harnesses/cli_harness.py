"""A command with `trial_input.json` in and `trial_output.json` out.

The command may be any program; what it writes is validated against `trial_output_v1`, its ids must be this trial's, and
what is missing, half-written or invalid is a labelled result rather than a crash.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from labaudit.core.strict_json import parse_object
from labaudit.engines.protocol import Sandbox
from labaudit.errors import BadInput
from labaudit.harnesses.protocol import HarnessEnd, TrialSession
from labaudit.records import document_rules
from labaudit.records.schema_registry import validate
from labaudit.store import atomic

POLL_SECONDS = 0.05
MAX_OUTPUT_BYTES = 16 << 20


@dataclass(frozen=True)
class OutputReading:
    """What `/out/trial_output.json` turned out to be."""

    output: dict[str, object] | None
    problem: str | None
    """None when the output is usable; otherwise absent, unreadable, invalid, or foreign ids, in one sentence."""
    cause: str | None
    """absent | invalid, for the missingness table."""


class CliHarness:
    """Starts the command, follows it, and waits for its end."""

    attach = False

    def run(self, session: TrialSession) -> HarnessEnd:
        """Runs to the command's end, its timeout, or the reason `poll` gives."""
        session.sandbox.start()
        session.on_started()
        done = threading.Event()
        watcher = threading.Thread(target=_watch, args=(session, done), daemon=True, name="trial-watch")
        watcher.start()
        try:
            result = session.sandbox.wait(session.timeout_s)
        finally:
            done.set()
            watcher.join(timeout=30)
        session.poll()
        return HarnessEnd(result)


def _watch(session: TrialSession, done: threading.Event) -> None:
    while not done.wait(POLL_SECONDS):
        reason = session.poll()
        if reason is not None:
            session.sandbox.stop(reason)
            return


class HarnessExecutor:
    """The seed's interface: a trial input to a trial output, in a sandbox that the caller opened."""

    def __init__(self, sandbox: Sandbox, *, timeout_s: float, output_name: str = "trial_output.json") -> None:
        self._sandbox = sandbox
        self._timeout_s = timeout_s
        self._output_name = output_name

    def run(self, trial_input: Mapping[str, object]) -> dict[str, object]:
        """Writes the input, runs the command, and returns its validated output; BadInput when there is none."""
        write_trial_input(self._sandbox, trial_input)
        self._sandbox.start()
        self._sandbox.wait(self._timeout_s)
        path = Path(self._sandbox.host.out) / self._output_name
        reading = read_trial_output(path, trial_input, out=self._sandbox.inside.out)
        if reading.output is None:
            raise BadInput(reading.problem or "the harness wrote no output", where=self._output_name)
        return reading.output


def write_trial_input(sandbox: Sandbox, trial_input: Mapping[str, object], *, name: str = "trial_input.json") -> bytes:
    """Puts the input where the harness finds it; returns its bytes."""
    findings = validate("trial_input_v1", dict(trial_input))
    if findings:
        raise BadInput(f"trial_input.json would be invalid: {findings[0].message}", where=findings[0].path)
    return atomic.write_json(Path(sandbox.host.input) / name, dict(trial_input))


def read_trial_output(path: Path, trial_input: Mapping[str, object], *, out: str = "/out") -> OutputReading:
    """The harness's output, or in words why there is none that counts."""
    if not path.is_file() or path.is_symlink():
        return OutputReading(None, "the harness wrote no trial_output.json", "absent")
    try:
        value = parse_object(atomic.read_bytes(path, max_bytes=MAX_OUTPUT_BYTES), where="trial_output.json")
    except BadInput as error:
        return OutputReading(None, f"trial_output.json cannot be read: {error.what}", "invalid")
    findings = [*validate("trial_output_v1", value), *document_rules.check_trial_output(value, out=out)]
    if findings:
        first = findings[0]
        return OutputReading(None, f"trial_output.json is invalid at {first.path or '/'}: {first.message}", "invalid")
    if value.get("ids") != trial_input["ids"]:
        return OutputReading(None, "trial_output.json carries the ids of another trial", "invalid")
    return OutputReading(value, None, None)
