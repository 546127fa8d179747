"""A run to the sentences that stand before its numbers: what makes it invalid, then what a reader should know.

A run that is invalid by its own rules is sealed, signed and whole; that nothing was changed does not make it count.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from labaudit.site.pages.tally import Tally
from labaudit.site.reading.published_run import PublishedRun
from labaudit.site.reading.run_check import RunCheck

Json = dict[str, Any]
LISTED = 5


def alarms(run: PublishedRun, check: RunCheck, tally: Tally) -> list[str]:
    """What makes the run's numbers unusable, in sentences; these stand before everything else."""
    found: list[str] = []
    if not check.holds:
        found.append(f"This run does not hold: the check ended with {check.verdict!r}.")
        found += [f"{item['path']}: {item['message']}".removeprefix(": ") for item in check.findings[:LISTED]]
    found += [text for text in run.problems if text not in {item["message"] for item in check.findings}]
    found += [f"Trial {item['trial_id']}: {item['problem']}." for item in tally.damaged]
    root = (run.manifest.get("run_tree") or {}).get("root")
    if tally.tree.root().hex() != root:
        found.append("The trial records do not give the tree root that the manifest names.")
    if run.totals["included"] == 0:
        found.append("No trial counts: there is no result to read.")
    found += invalid_by_its_own_rules(run)
    if tally.violation_count:
        which = ", ".join(item["trial_id"] for item in tally.violations[:3])
        found.append(f"{tally.violation_count} trial(s) leaked state or broke their profile's invariants: {which}.")
    return found


def invalid_by_its_own_rules(run: PublishedRun) -> list[str]:
    """Trials that a rule excluded, and a bill of materials that the plan required and nobody could make.

    The same that `labaudit run` ends with 1 for; a lost trial is counted, and invalidates only where all are lost.
    """
    reasons: dict[str, list[str]] = {}
    for row in run.rows:
        if row.get("status") == "excluded":
            said = str(row.get("reason") or "no reason given")
            reasons.setdefault(str(row.get("rule") or "no rule"), []).append(said)
    found = [
        f"{len(said)} of {run.totals['scheduled']} trials are excluded by rule {rule}: {said[0]}."
        for rule, said in sorted(reasons.items())
    ]
    if run.rows and run.totals["lost"] == len(run.rows):
        found.append("Every trial was lost.")
    stated = (run.attestation or {}).get("sbom") or {}
    if (run.resolved.get("provenance") or {}).get("sbom") == "required":
        missing = [item for item in stated.get("missing") or [] if isinstance(item, dict)]
        found += [
            f"The plan requires a bill of materials, and {item.get('subject')} has none: {item.get('reason')}."
            for item in missing
        ]
    return found


def unusable(run: PublishedRun) -> list[str]:
    """Lost trials, errors and missing outputs, counted from rows."""
    found = []
    lost = [str(row.get("reason") or "no reason given") for row in run.rows if row.get("status") == "lost"]
    if lost:
        found.append(f"{len(lost)} of {run.totals['scheduled']} trials were lost: {lost[0]}.")
    ended = Counter(row.get("outcome") for row in run.rows if row.get("status") == "included")
    for outcome, text in (("error", "ended in error"), ("missing", "left no usable output")):
        if ended[outcome]:
            found.append(f"{ended[outcome]} of {run.totals['scheduled']} trials {text}.")
    return found


def warnings(run: PublishedRun) -> list[str]:
    """What a reader should know before the numbers, though it does not invalidate them."""
    found = imported(run) + unusable(run)
    found += [str(item.get("sentence")) for item in (run.comparisons or {}).get("warnings") or []]
    found += [str(item.get("sentence")) for item in (run.grades or {}).get("caveats") or []]
    if run.comparisons is None:
        found.append("There is no analysis in this run, so no effect is shown.")
    if not run.statements:
        found.append("Nobody signed this run: it can be checked for damage, not for its origin.")
    return list(dict.fromkeys(found))


def imported(run: PublishedRun) -> list[str]:
    """For results that another tool made: that it did, every mismatch of its files, and what else should be known."""
    report = run.import_report
    if report is None:
        return []
    tool = report.get("tool") or {}
    name = f"{tool.get('name')} {tool.get('version') or ''}".strip()
    if tool.get("name") in (None, "unknown"):
        name = "a tool that they do not name"
    found = [f"These results were imported from files of {name}."]
    findings = [item for item in report.get("findings") or [] if isinstance(item, dict)]
    for severity, word in (("mismatch", "Mismatch: "), ("caution", "")):
        found += [f"{word}{item.get('sentence')}" for item in findings if item.get("severity") == severity]
    return found
