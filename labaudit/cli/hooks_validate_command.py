"""`labaudit hooks-validate`: a hook stream against its manifest and the numbered rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from labaudit.cli.schema_command import open_input
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput
from labaudit.evidence.control_history import read_control_history
from labaudit.evidence.harness_manifest import HarnessManifest
from labaudit.evidence.hook_collector import HookCounts, HookStream, judge
from labaudit.evidence.hook_rules import Expected
from labaudit.evidence.observation import NotObserved
from labaudit.store import atomic

_FILE = click.Path(path_type=Path)


@click.command("hooks-validate")
@click.argument("events", metavar="EVENTS")
@click.option("--manifest", type=_FILE, required=True, metavar="M", help="The harness_manifest.json of the stream.")
@click.option("--trial-input", type=_FILE, metavar="FILE", help="Hold the ids against this trial_input.json.")
@click.option("--control-log", type=_FILE, metavar="FILE", help="Hold each control_ack against this control.jsonl.")
@click.option("--strict", is_flag=True, help="As under replay_strict_v2; also count findings that only degrade.")
@click.option("--json", "as_json", is_flag=True, help="One JSON report on stdout.")
@click.pass_context
def hooks_validate(
    ctx: click.Context,
    events: str,
    manifest: Path,
    trial_input: Path | None,
    control_log: Path | None,
    strict: bool,
    as_json: bool,
) -> None:
    """Check the hook stream EVENTS (or - for stdin) against its manifest and every rule between events.

    Ends with 1 when a rule is broken and with 2 when a line is no JSON. A rule that could not be checked is named.

    Example: labaudit hooks-validate harness_events.jsonl --manifest harness_manifest.json
    """
    history = None
    if control_log is not None:
        written = read_control_history(control_log)
        if written is None:
            raise BadInput("there is no such file", where=str(control_log))
        history = {entry.control_version: entry for entry in written}
    expected = Expected(HarnessManifest.load(manifest), _ids(trial_input), history)
    with open_input(events) as stream:
        result = judge(stream, expected, strict=strict)
    unchecked = _unchecked(trial_input, control_log)
    if as_json:
        click.echo(json.dumps({"file": events, **_report(result), "unchecked": unchecked}))
    else:
        _say(events, result, unchecked)
    ctx.exit(_exit_code(result))


def _ids(path: Path | None) -> dict[str, object] | None:
    if path is None:
        return None
    value = parse_object(atomic.read_bytes(path, max_bytes=64 << 20), where=str(path)).get("ids")
    if not isinstance(value, dict):
        raise BadInput("has no ids", where=str(path))
    return value


def _unchecked(trial_input: Path | None, control_log: Path | None) -> list[str]:
    told = []
    if trial_input is None:
        told.append("H7 whose stream it is (give --trial-input); only that all events agree")
    if control_log is None:
        told.append("H8 what the runner wrote (give --control-log)")
    return told


def _exit_code(result: HookStream) -> int:
    if result.verdict == "unreadable":
        return 2
    if result.verdict == "invalid" or (result.strict and result.verdict == "degraded"):
        return 1
    return 0


def _report(result: HookStream) -> dict[str, Any]:
    return {
        "verdict": result.verdict,
        "strict": result.strict,
        "events": result.events,
        "findings": [finding.__dict__ for finding in result.findings],
        "findings_total": result.findings_total,
        "findings_by_rule": dict(result.findings_by_rule),
        "acks_missing": result.acks_missing,
        "counts": _counts(result.counts),
    }


def _counts(counts: HookCounts | NotObserved) -> dict[str, Any] | None:
    if isinstance(counts, NotObserved):
        return None
    return {
        key: {"not_observed": value.reason} if isinstance(value, NotObserved) else value
        for key, value in counts.__dict__.items()
    }


def _say(name: str, result: HookStream, unchecked: list[str]) -> None:
    for finding in result.findings:
        place = f"{name}:{finding.line}" if finding.line else name
        word = " (degrades)" if finding.weight == "degrades" else ""
        click.echo(f"{place}: {finding.sentence} [{finding.rule} {finding.name}]{word}")
    if result.findings_total > len(result.findings):
        click.echo(f"{name}: {result.findings_total - len(result.findings)} more findings")
    counts = result.counts
    if isinstance(counts, HookCounts):
        turns = counts.turn_count if isinstance(counts.turn_count, int) else "unknown"
        told = f"{counts.step_count} steps, {turns} turns, {counts.tool_calls} tool calls, {counts.acks} control acks"
        click.echo(f"{name}: {result.verdict}, {result.events} events: {told}")
    else:
        click.echo(f"{name}: {result.verdict}; nothing is counted from it", err=True)
    for what in unchecked:
        click.echo(f"{name}: not checked: {what}", err=True)
