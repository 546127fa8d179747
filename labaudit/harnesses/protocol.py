"""The seam between the runner and a kind of harness: one session in, one end out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from labaudit.core.clock import Clock
from labaudit.core.redaction import Redactor
from labaudit.engines.protocol import Sandbox, SandboxResult
from labaudit.records.resolved import ResolvedExperiment


@dataclass(frozen=True)
class TrialSession:
    """Everything a harness needs for one attempt; the sandbox is open, its input is written, nothing runs yet."""

    trial_input: Mapping[str, object]
    resolved: ResolvedExperiment
    sandbox: Sandbox
    staging: Path
    """Runner-side folder of the attempt: what is written here is out of the harness's reach."""
    timeout_s: float
    clock: Clock
    on_started: Callable[[], None]
    """Called once, as soon as the sandbox runs."""
    poll: Callable[[], str | None]
    """Called often while it runs; a text is the reason to stop now (budget spent, run interrupted)."""
    write_control: Callable[[str, str | None], str]
    """(action, label) to the control file; returns the control_version."""
    read_control: Callable[[], tuple[str, str, str | None]]
    """What the control file says now: (control_version, action, label)."""
    redactor: Redactor = field(default_factory=Redactor)
    """What a bridge writes itself passes through it: rules of the experiment, values of its secrets."""


@dataclass(frozen=True)
class HarnessEnd:
    """How the harness ended. A bridge that speaks for the harness puts the files it wrote into `written`."""

    result: SandboxResult
    trial_output: Mapping[str, object] | None = None
    """Made by a bridge (ACP); None means: read /out."""
    written: Mapping[str, Path] = field(default_factory=dict)
    """Trial file name (say `harness_events.jsonl`) to the staged file that stands for it."""
    notes: tuple[str, ...] = ()


class Harness(Protocol):
    """One kind of harness."""

    @property
    def attach(self) -> bool:
        """True when the sandbox's streams must stay open."""
        ...

    def run(self, session: TrialSession) -> HarnessEnd:
        """Drives the session to its end; infrastructure failures raise, everything the harness did is a result."""
        ...
