"""How a harness ended and what it wrote to the trial's outcome, as one table of rules.

    output by a bridge                         the outcome it states: it saw how the agent ended, and ended it itself
    valid output, clean end                    the outcome it states
    valid output saying success, bad end       error: a success that crashed, hung or ran out of memory is none
    valid output saying anything else          the outcome it states
    no usable output, exit 0                   missing
    no usable output, any other end            error
    strict profile and a broken hook stream    error
    required manifest missing, no leave given  error
"""

from __future__ import annotations

from dataclasses import dataclass

from labaudit.engines.protocol import SandboxResult
from labaudit.evaluators.verdict import Cause
from labaudit.harnesses.cli_harness import OutputReading


@dataclass(frozen=True)
class TrialOutcome:
    """The outcome with its reason; `cause` says why a metric of the harness's own is missing."""

    outcome: str
    reason: str
    cause: Cause | None


def decide(reading: OutputReading, result: SandboxResult, *, hooks_fail: str | None, manifest_fail: str | None,
           bridged: bool = False) -> TrialOutcome:  # fmt: skip
    """Applies the rules in order."""
    bad_end = describe_bad_end(result) if not bridged or result.timed_out else None
    if manifest_fail is not None:
        return TrialOutcome("error", manifest_fail, "error")
    if hooks_fail is not None:
        return TrialOutcome("error", hooks_fail, "error")
    if reading.output is None:
        reason = reading.problem or "there is no output"
        if bad_end is None:
            return TrialOutcome("missing", reason, "invalid" if reading.cause == "invalid" else "missing")
        return TrialOutcome("error", f"{bad_end}; {reason}", "error")
    stated = str(reading.output["outcome"])
    if stated == "success" and bad_end is not None:
        return TrialOutcome("error", f"the harness states success, but {bad_end}", "error")
    return TrialOutcome(stated, "stated by the bridge" if bridged else "stated by the harness", None)


def describe_bad_end(result: SandboxResult) -> str | None:
    """In words why this end cannot carry a success; None when the harness ended by itself with exit code 0."""
    if result.engine_error:
        return f"the command did not start: {result.engine_error}"
    if result.timed_out:
        return "it ran into its timeout"
    if result.oom.verdict == "main_killed":
        return "it was killed for want of memory"
    if result.cause == "stopped":
        # A harness that obeys a stop ends by itself; being ended by signal is no clean end.
        return f"it was stopped ({result.stop_reason})"
    if result.signal is not None:
        return f"it died of signal {result.signal}"
    if result.exit_code != 0:
        return f"it ended with exit code {result.exit_code}"
    return None
