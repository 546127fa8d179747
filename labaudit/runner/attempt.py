"""One attempt at a trial, stage by stage: sandbox, harness, collection, harvest, measurement, grades, commit.

What the harness does wrong is a result and ends in a completed trial. What the infrastructure does wrong is raised as
`AttemptLost`: the attempt stays as evidence and the trial may be tried again.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from labaudit.contracts.task_limits import trial_seconds_for
from labaudit.core.clock import rfc3339
from labaudit.core.strict_json import parse_object
from labaudit.engines.protocol import Collection, Sandbox, SandboxResult
from labaudit.errors import LabauditError
from labaudit.evidence.harvest import Harvest, HarvestOrder, harvest
from labaudit.evidence.otlp.received import ReceivedSpans
from labaudit.evidence.recorder import Recorder
from labaudit.evidence.trial_facts import CUT_SHORT
from labaudit.harnesses.cli_harness import OutputReading, read_trial_output, write_trial_input
from labaudit.harnesses.control_plane import ControlPlane
from labaudit.harnesses.protocol import Harness, HarnessEnd, TrialSession
from labaudit.planning.schedule import PlannedTrial
from labaudit.records.trial_record import TrialRecord
from labaudit.runner.a2a import convert_packets
from labaudit.runner.checkpoints.checkpoint import CheckpointManager, RuntimeState
from labaudit.runner.commit import log_identity, staging, trial_ids
from labaudit.runner.context import RunContext
from labaudit.runner.inventory import state_inventory
from labaudit.runner.live import HookFollower, LiveTrial, Progress
from labaudit.runner.live_file import LiveFile, notes_folder
from labaudit.runner.measure import framework_values, measure, records
from labaudit.runner.outcome import TrialOutcome, decide
from labaudit.runner.outputs import keep_outputs, write_log, write_network_events
from labaudit.runner.sandbox_plan import control_path, sandbox_spec, trial_input
from labaudit.runner.sealed import finish_sealed, seal_attempt
from labaudit.runner.tracing import Tracing
from labaudit.store import atomic
from labaudit.store.event_log import EventLog
from labaudit.store.run_folder import TrialFolder

# Beyond this many hook events the RunRecord's trace says that it was shortened; the stream itself is kept whole.
MAX_TRACE_EVENTS = 10_000


class AttemptLost(Exception):
    """The infrastructure failed under the trial; `reason` is one sentence."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Attempt:
    """One attempt at one planned trial."""

    def __init__(self, ctx: RunContext, planned: PlannedTrial, number: int, harness: Harness) -> None:
        self.ctx = ctx
        self.planned = planned
        self.number = number
        self.harness = harness
        self.ids = trial_ids(ctx, planned)
        self.trial = TrialFolder(staging(ctx, planned, number))
        self.collected = ctx.live / planned.trial_id / f"out-{number}"
        self.inside_out = "/out"
        self.received: ReceivedSpans | None = None
        self.trial.path.mkdir(parents=True)
        log = EventLog(self.trial.events, log_identity(ctx, planned, number), clock=ctx.clock)
        self.recorder = Recorder(log, ctx.run.artifacts, ctx.redactor())
        self.checkpoints = CheckpointManager(
            self.trial, self.recorder, self.ids, number, ctx.resolved_digest, ctx.clock
        )

    def run(self) -> TrialRecord:
        """Runs the attempt to its commit; AttemptLost when the infrastructure failed."""
        try:
            self.recorder.record("trial.started", durable=True)
            end, collection, given = self._execute()
            self._finish(end, collection, given)
        except LabauditError as error:
            self.recorder.log.close()
            raise AttemptLost(self.recorder.redactor.text(error.what)) from error
        except OSError as error:
            self.recorder.log.close()
            raise AttemptLost(f"the runner could not go on: {error.strerror or error}") from error
        finally:
            shutil.rmtree(self.collected, ignore_errors=True)
        # The result stands: what goes wrong from here on ends the run, and `resume` finishes the trial.
        return finish_sealed(self.ctx, self.planned, self.number, self.ctx.evidence_origin)

    def _execute(self) -> tuple[HarnessEnd, Collection, Mapping[str, Any]]:
        """Sandbox and harness; the sandbox is gone afterwards, whatever happened."""
        ctx = self.ctx
        mode = ctx.resolved.runtime.harness.tracing.mode
        shared = ctx.engine.name == "process"
        spool = ctx.live / self.planned.trial_id
        with Tracing(mode, self.recorder.redactor, spool, shared_loopback=shared) as tracing:
            spec = sandbox_spec(ctx, self.planned, self.number, attach=self.harness.attach, services=tracing.services)
            sandbox = ctx.engine.open(spec)
            try:
                if ctx.linked is not None and ctx.linked.restore is not None:
                    ctx.linked.restore(
                        {"workspace": Path(sandbox.host.workspace), "state": Path(sandbox.host.state)}
                    )
                given = trial_input(ctx, self.planned, sandbox, self.ids.to_json())
                name = Path(ctx.resolved.runtime.harness.input_path).name
                data = write_trial_input(sandbox, given, name=name)
                atomic.write_bytes(self.trial.trial_input, data, durable=False)
                end = self._drive(sandbox, given)
                collection = sandbox.collect_outputs(self.collected)
                self.inside_out = sandbox.inside.out
            finally:
                sandbox.remove()
            self.received = tracing.received()
        if ctx.stop.is_set() and end.result.cause != "exited":
            raise AttemptLost("the run was interrupted")
        if end.result.cause == "lost":
            raise AttemptLost(f"the sandbox was lost: {end.result.engine_error or 'the engine gives no reason'}")
        return end, collection, given

    def _drive(self, sandbox: Sandbox, given: Mapping[str, Any]) -> HarnessEnd:
        ctx = self.ctx
        declared = ctx.resolved.runtime.harness.control_plane.path or "/state/lab_control.json"
        control = ControlPlane(
            Path(control_path(declared, sandbox.host.state)),
            self.trial.control_log,
            clock=ctx.clock,
            root=Path(sandbox.host.state),
        )
        control.write("continue", by="runner")
        note = LiveFile(notes_folder(ctx.lab, ctx.run_id), self.planned.trial_id)
        live = LiveTrial(
            ctx.resolved,
            # A bridge writes its hook stream into the staging folder; what its agent puts into /out is no stream.
            HookFollower(self.trial.path if self.harness.attach else Path(sandbox.host.out), sandbox.inside.out),
            control,
            stop=ctx.stop,
            requests=note.new_requests,
            take_checkpoint=self._checkpointer(sandbox, control),
            now=time.monotonic,
        )
        session = TrialSession(
            trial_input=given,
            resolved=ctx.resolved,
            sandbox=sandbox,
            staging=self.trial.path,
            timeout_s=trial_seconds_for(given["task"], float(ctx.resolved.runtime.timeouts.trial_seconds)),
            clock=ctx.clock,
            on_started=self._started,
            poll=live.poll,
            write_control=lambda action, label: control.write(action, label),
            read_control=control.read,
            redactor=self.recorder.redactor,
        )
        with note:
            end = self.harness.run(session)
        if ctx.resolved.runtime.checkpoints.at_end:
            self._save_or_say(sandbox, "end", live.progress.last_step, "at_end", live.progress)
        self.recorder.record("harness.exited", _end_payload(end.result, end.notes, live.budget_spent))
        self.recorder.log.flush()
        return end

    def _checkpointer(self, sandbox: Sandbox, control: ControlPlane) -> Callable[[str, int | None, Progress], None]:
        """Saves a checkpoint while every process of the sandbox stands still."""

        def save(label: str, step_index: int | None, progress: Progress) -> None:
            trigger = "every_steps" if label.startswith("step-") else "control"
            try:
                sandbox.pause()
                try:
                    self._save_or_say(sandbox, label, step_index, trigger, progress, control.read()[0])
                finally:
                    sandbox.unpause()
            except (LabauditError, OSError) as error:
                self._say_failed(label, error)

        return save

    def _save_or_say(self, sandbox: Sandbox, label: str, *state: Any) -> None:
        """A checkpoint that cannot be taken costs the checkpoint, not the trial."""
        try:
            self._save(sandbox, label, *state)
        except (LabauditError, OSError) as error:
            self._say_failed(label, error)

    def _say_failed(self, label: str, error: LabauditError | OSError) -> None:
        said = error.what if isinstance(error, LabauditError) else str(error)
        self.recorder.record("checkpoint.failed", {"label": label, "reason": self.recorder.redactor.text(said)})

    def _save(
        self,
        sandbox: Sandbox,
        label: str,
        step_index: int | None,
        trigger: str,
        progress: Progress,
        version: str | None = None,
    ) -> None:
        state = RuntimeState(
            trigger=trigger,
            step_index=step_index,
            event_seq=self.recorder.log.count - 1,
            hook_seq=progress.hook_seq,
            control_version=version,
            budgets=progress.budgets,
        )
        surfaces = {"workspace": Path(sandbox.host.workspace), "state": Path(sandbox.host.state)}
        self.checkpoints.save(label, surfaces, state)

    def _started(self) -> None:
        self.recorder.record("harness.started")

    def _finish(self, end: HarnessEnd, collection: Collection, given: Mapping[str, Any]) -> None:
        """Everything after the sandbox is gone, up to the sealed log."""
        result = end.result
        keep_outputs(self.recorder, self.collected, collection)
        write_log(self.recorder, self.trial.stdout, result.stdout)
        write_log(self.recorder, self.trial.stderr, result.stderr)
        write_network_events(self.trial, result.network.events, self.recorder.redactor)
        order = HarvestOrder(
            out=self.collected,
            ids=self.ids,
            strict=self.ctx.resolved.design.sanitization_profile == "replay_strict_v2",
            cut_short=result.cause in CUT_SHORT,
            inside_out=self.inside_out,
            written=end.written,
            received=self.received,
        )
        found = harvest(order, self.trial, self.recorder, self.ctx.clock)
        reading = self._read_output(end, given)
        decided = decide(
            reading,
            result,
            hooks_fail=_hooks_failure(found),
            manifest_fail=self._manifest_failure(found),
            bridged=end.trial_output is not None,
        )
        self._measure(decided, reading, result, found)
        inventory = state_inventory(self.ctx, self.ids, result, collection, "cli_basic")
        seal_attempt(self.ctx, self.trial, self.recorder.log, inventory, self.recorder.references)

    def _read_output(self, end: HarnessEnd, given: Mapping[str, Any]) -> OutputReading:
        """The output as it is kept: redacted, then read again, so that stored and judged bytes are the same."""
        name = Path(self.ctx.resolved.runtime.harness.output_path).name
        source = self.collected / name
        if end.trial_output is not None:
            self.collected.mkdir(parents=True, exist_ok=True)
            atomic.write_json(source, dict(end.trial_output), durable=False)
        if source.is_file() and self.recorder.redactor.active and source.stat().st_size <= 16 << 20:
            atomic.write_bytes(source, self.recorder.redactor.apply(source.read_bytes()).data, durable=False)
        reading = read_trial_output(source, given, out=self.inside_out)
        if reading.output is not None:
            shutil.copyfile(source, self.trial.trial_output)
        return reading

    def _manifest_failure(self, found: Harvest) -> str | None:
        expected = self.ctx.resolved.runtime.harness.integration_level
        if found.manifest is not None or expected == "cli_basic" or self.ctx.options.allow_missing_harness_manifest:
            return None
        return f"level {expected} needs a harness manifest: {found.manifest_problem}"

    def _measure(
        self, decided: TrialOutcome, reading: OutputReading, result: SandboxResult, found: Harvest
    ) -> None:
        valid = found.stream is not None and found.stream.valid
        measured = measure(
            self.ctx, self.planned, self.ids, self.number, decided, reading.output, self.collected,
            framework_values(result, found.stream if valid else None),
        )  # fmt: skip
        atomic.write_bytes(self.trial.metrics, measured.metrics.to_bytes(), durable=False)
        values = measured.metrics.to_json()["metrics"]
        judged = {"outcome": decided.outcome, "reason": decided.reason, "metrics": values}
        # Not flushed: result and seal reach the file together, so that no crash leaves one without the other.
        self.recorder.record("trial.judged", judged)
        harness = found.manifest.record.harness if found.manifest is not None else None
        started, ended = rfc3339(result.started_at), rfc3339(result.ended_at)
        run, scores, problems = records(
            self.ctx, self.planned, measured, decided, reading.output,
            (started, ended, (result.ended_at - result.started_at).total_seconds() * 1000),
            (self._own_events(), _hook_events(self.trial) if valid else ()),
            (harness.name if harness else self.ctx.resolved.experiment.id, harness.version if harness else None),
        )  # fmt: skip
        for problem in problems:
            self.recorder.record("evaluator.failed", {"problem": problem})
        atomic.write_json(self.trial.run_record, run, durable=False)
        atomic.write_lines(self.trial.score_records, list(scores), durable=False)
        convert_packets(self.collected, self.trial, self.recorder)

    def _own_events(self) -> list[dict[str, Any]]:
        return [event for event in self.recorder.log.events() if event.get("source") != "hooks"]


def _hooks_failure(found: Harvest) -> str | None:
    stream = found.stream
    if stream is None or stream.valid or not stream.strict:
        return None
    first = next(item for item in stream.findings if item.weight != "degrades")
    return f"the hook stream is broken at line {first.line} ({first.rule}): {first.sentence}"


def _hook_events(trial: TrialFolder) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    with trial.harness_events.open("rb") as stream:
        for line in stream:
            if len(events) >= MAX_TRACE_EVENTS:
                break
            events.append(parse_object(line.rstrip(b"\n"), where="harness_events.jsonl"))
    return events


def _end_payload(result: SandboxResult, notes: tuple[str, ...], budget: str | None) -> dict[str, object]:
    return {
        "cause": result.cause,
        "exit_code": result.exit_code,
        "signal": result.signal,
        "timed_out": result.timed_out,
        "oom": result.oom.verdict,
        "stop_reason": result.stop_reason,
        "engine_error": result.engine_error,
        "stdout": {"bytes": result.stdout.total, "sha256": result.stdout.sha256},
        "stderr": {"bytes": result.stderr.total, "sha256": result.stderr.sha256},
        "budget_spent": budget,
        "notes": list(notes),
    }
