"""Grades of a run and its trials to `grades.html`: rule, observed evidence, digest, trial, in three clicks.

Each rule is met, not met, or has no evidence; the third is an answer of its own.
"""

from __future__ import annotations

from typing import Any

import orjson

from labaudit.core.digest import sha256_hex
from labaudit.records.grades import SCALES
from labaudit.site.pages.grade_rules import NEEDS, READS, RULES
from labaudit.site.pages.run_pages import RunSite
from labaudit.site.pages.trial_page import grade_rows

Json = dict[str, Any]


def write_grades(site: RunSite) -> None:
    """`grades.html` of one run."""
    grades = [_grade(site, row) for row in grade_rows(site.run.grades)]
    site.page("grades.html", "grades.html", grades=grades, total=site.run.totals["scheduled"], computed=site.check)


def _grade(site: RunSite, row: Json) -> Json:
    name = row["name"]
    scale = SCALES[name]
    counts = site.tally.values[name]
    known = [value for value in scale if value in counts]
    return {
        **row,
        "scale": scale,
        # C00 is the answer of a single trial; the run is never asked it.
        "rules": [_rule(site, row, rule, text) for rule, text in RULES[name] if rule != "C00"]
        + _unknown_rules(site, row),
        "counts": [
            {"value": value, "count": counts[value], "examples": site.tally.examples[name, value]}
            for value in [*known, *sorted(set(counts) - set(scale))]
        ],
    }


def _rule(site: RunSite, row: Json, rule: str, text: str) -> Json:
    """One rule over the run: caps of the run's own grade, and of each trial's."""
    name, total = row["name"], site.run.totals["scheduled"]
    own = [cap for cap in row["caps"] if cap.get("rule") == rule]
    seen = [found for key, found in site.tally.rules.items() if key[0] == name and key[1] == rule]
    not_met = sum(found.count for found in seen)
    unseen = _without_evidence(site, name, rule, total)
    state = "not_met" if own or (not_met and name != "comparability") else "met"
    if state == "met" and (site.run.grades is None or (name != "comparability" and unseen == total)):
        state = "no_evidence"
    trials = [example for found in seen for example in found.trials]
    return {
        "id": rule,
        "asks": text,
        "state": state,
        "to": own[0].get("to") if own else "",
        "sentences": [cap.get("sentence") for cap in own] or [found.sentence for found in seen[:1]],
        "evidence": [evidence_link(site, str(cap.get("evidence"))) for cap in own],
        "met": 0 if name == "comparability" else max(0, total - max(not_met, unseen)),
        "not_met": 0 if name == "comparability" else not_met,
        "no_evidence": 0 if name == "comparability" else max(0, unseen - not_met),
        "trials": [] if name == "comparability" else trials,
        "read": _read(site, name, rule) if state == "met" else None,
    }


def _read(site: RunSite, name: str, rule: str) -> Json | None:
    """The file in which a reader sees a rule met: the run's own, or that of the first trial which has one."""
    file = READS.get(rule) or READS.get(rule[:1], "")
    example = _example(site, name)
    if name == "comparability":
        found = {**evidence_link(site, file), "name": file}
        return found if found["sha256"] else None
    if example is None or not file:
        return None
    found = evidence_link(site, f"trials/{example['trial_id']}/{file}")
    if not found["sha256"]:
        # The trial has no such file; its record, which lists all files, is what shows that.
        file = "trial_record.json"
        found = evidence_link(site, f"trials/{example['trial_id']}/{file}")
    return {**found, "name": file, "trial_id": example["trial_id"]}


def _example(site: RunSite, name: str) -> Json | None:
    """A trial that a reader can open to see a rule met; none for a rule that is asked of the run."""
    shown = [site.tally.examples[name, value] for value in SCALES[name] if site.tally.examples.get((name, value))]
    return shown[0][0] if shown and name != "comparability" else None


def _without_evidence(site: RunSite, name: str, rule: str, total: int) -> int:
    """How many trials have nothing that the rule could be asked of."""
    counts = site.tally.values[name]
    unseen = counts.get("not_observed", 0) + counts.get("no evidence", 0)
    source = ((site.run.grades or {}).get("evidence_sources") or {}).get(NEEDS.get(rule, "")) or {}
    covered = source.get("covered") if rule in NEEDS else total
    return max(unseen, total - covered) if isinstance(covered, int) else total


def _unknown_rules(site: RunSite, row: Json) -> list[Json]:
    """Rules of another version that this one cannot name are shown with their own sentence."""
    known = {rule for rule, _ in RULES[row["name"]]}
    names = sorted({str(cap.get("rule")) for cap in row["caps"]} - known)
    return [_rule(site, row, name, "A rule that this version does not know.") for name in names]


def evidence_link(site: RunSite, path: str) -> Json:
    """A piece of evidence by path, with its page and the digest that the manifest or the trial's record gives it."""
    parts = path.split("/", 2)
    if len(parts) == 3 and parts[0] == "trials":
        row = next((row for row in site.run.rows if row["trial_id"] == parts[1]), None)
        place = site.places.trial(row) if row else None
        href = f"{place.path}#{place.event_prefix}files" if place else ""
        return {"path": path, "href": href, "sha256": _digest_in_record(site, parts[1], parts[2])}
    entry = site.run.listed.get(path) or {}
    return {"path": path, "href": f"files/{path}" if entry else "", "sha256": str(entry.get("sha256", ""))}


def _digest_in_record(site: RunSite, trial_id: str, name: str) -> str:
    try:
        data = site.run.folder.trial(trial_id).trial_record.read_bytes()
        if name == "trial_record.json":
            return sha256_hex(data)
        record = orjson.loads(data)
        return str(next(item["sha256"] for item in record["files"] if item["path"] == name))
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return ""
