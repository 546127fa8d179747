"""An ACP agent in a sandbox to a finished trial: the bridge outside speaks, the agent inside answers.

Everything that counts as evidence is written to the runner's staging folder, which the agent cannot reach. What an
agent puts into `/out` under the same names is collected like any other file and stands for nothing.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

from labaudit.core.digest import Digest
from labaudit.engines.running.collect import collect
from labaudit.harnesses.acp.client.client import ACPClient
from labaudit.harnesses.acp.client.permissions import by_policy
from labaudit.harnesses.acp.trial import report
from labaudit.harnesses.acp.trial.conversation import CANCEL_GRACE_S, Conversation, Finished, Surroundings
from labaudit.harnesses.acp.trial.hook_stream import HookStream
from labaudit.harnesses.acp.trial.plan import ConversationPlan, plan_conversation
from labaudit.harnesses.acp.trial.sandbox_link import SandboxLink
from labaudit.harnesses.acp.wire.transcript import Transcript
from labaudit.harnesses.protocol import HarnessEnd, TrialSession
from labaudit.store import atomic

POLL_S = 0.05
LEAVE_S = 4.0
EVENTS = "harness_events.jsonl"
MANIFEST = "harness_manifest.json"
TRANSCRIPT = "acp_transcript.jsonl"
KIRO_SESSIONS = ".kiro/sessions/cli"
MAX_KIRO_BYTES = 16 << 20


class AcpHarness:
    """Drives one trial of an ACP agent."""

    attach = True

    def run(self, session: TrialSession) -> HarnessEnd:
        """Runs to the last turn's end, the timeout, or the reason `poll` gives."""
        resolved = session.resolved.runtime
        cwd = session.sandbox.inside.workspace
        plan = plan_conversation(resolved.harness, resolved.budgets, session.trial_input, cwd)
        transcript = Transcript(session.staging / TRANSCRIPT, clock=session.clock, redactor=session.redactor)
        client = ACPClient(
            plan.cwd,
            resolved.harness.command,
            dialect=plan.dialect,
            link=lambda: SandboxLink(session.sandbox, session.on_started),
            transcript=transcript,
            on_permission=by_policy(plan.policy),
        )
        hooks = self._open_hooks(session)
        watch = _Watch(session)
        try:
            finished = _converse(session, client, plan, hooks, watch)
            return self._finish(session, client, plan, finished)
        finally:
            watch.close()
            hooks.close()
            transcript.close()

    def _open_hooks(self, session: TrialSession) -> HookStream:
        manifest = report.manifest_document(session.resolved.runtime.harness, session.clock)
        data = atomic.write_json(session.staging / MANIFEST, manifest)
        ids = session.trial_input["ids"]
        hooks = HookStream(
            session.staging / EVENTS, ids, clock=session.clock, redactor=session.redactor  # type: ignore[arg-type]
        )
        hooks.header(Digest.of(data))
        return hooks

    def _finish(
        self, session: TrialSession, client: ACPClient, plan: ConversationPlan, finished: Finished
    ) -> HarnessEnd:
        sandbox = session.sandbox
        if finished.timed_out:
            # The engine then records a timeout: SIGTERM, grace, SIGKILL.
            result = sandbox.wait(session.timeout_s)
            client.close(0.0)
        else:
            client.close(LEAVE_S)
            result = sandbox.wait(None)
        # An attempt whose transcript has gaps is lost by our fault, not failed by the agent's.
        client.transcript.check()
        written = {name: session.staging / name for name in (EVENTS, MANIFEST, TRANSCRIPT)}
        written |= _kiro_sessions(session) if plan.dialect == "kiro" else {}
        output = report.trial_output(session.trial_input["ids"], finished, plan, client)  # type: ignore[arg-type]
        return HarnessEnd(result, trial_output=output, written=written, notes=plan.notes)


class _Watch:
    """Calls the runner's `poll` all the while, and ends the sandbox when a reason to stop brings no end by itself."""

    def __init__(self, session: TrialSession) -> None:
        self._session = session
        self._done = threading.Event()
        self.reason: str | None = None
        self._thread = threading.Thread(target=self._run, name="acp-watch", daemon=True)

    def start(self) -> None:
        """From the moment the sandbox may run."""
        self._thread.start()

    def close(self) -> None:
        """One last look, so that nothing which was written meanwhile is missed."""
        self._done.set()
        if self._thread.is_alive():
            self._thread.join(30)
            self._session.poll()

    def _run(self) -> None:
        while not self._done.wait(POLL_S):
            self.reason = self._session.poll()
            if self.reason is not None:
                # A turn is cancelled by the one who drives it; whatever else hangs is ended here.
                if not self._done.wait(CANCEL_GRACE_S * 2):
                    self._session.sandbox.stop(self.reason)
                return


def _converse(
    session: TrialSession, client: ACPClient, plan: ConversationPlan, hooks: HookStream, watch: _Watch
) -> Finished:
    around = Surroundings(
        deadline=time.monotonic() + session.timeout_s,
        stop_asked=lambda: watch.reason,
        look=session.poll,
        write_control=session.write_control,
        read_control=session.read_control,
    )
    watch.start()
    return Conversation(client, plan, hooks, around).run()


def _kiro_sessions(session: TrialSession) -> dict[str, Path]:
    """Kiro's own session files, wherever the agent's home was; links and odd files are left behind."""
    for home in (session.sandbox.host.workspace, session.sandbox.host.state):
        source = Path(home) / KIRO_SESSIONS
        if source.is_dir() and not any(part.is_symlink() for part in (source, source.parent, source.parent.parent)):
            target = session.staging / "kiro_sessions"
            taken = collect(source, target, max_bytes=MAX_KIRO_BYTES)
            return {f"kiro_sessions/{file.path}": target / file.path for file in taken.files}
    return {}
