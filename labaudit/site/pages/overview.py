"""A run to its front page: what invalidates it first, then the effect, the grades, what is missing, and who signed."""

from __future__ import annotations

from collections import Counter
from typing import Any

from labaudit.site.drawing import figures
from labaudit.site.pages.dataset_metadata import json_ld
from labaudit.site.pages.effects import effect_rows, forest_plot
from labaudit.site.pages.first_lines import alarms, warnings
from labaudit.site.pages.run_pages import RunSite
from labaudit.site.pages.times import moments
from labaudit.site.pages.trial_page import grade_rows
from labaudit.site.reading.published_run import SOURCES, PublishedRun

Json = dict[str, Any]
TOP = 5
SEEN_BY = {
    "framework_events": "the runner, outside the sandbox",
    "hooks": "the harness, about itself",
    "traces": "the harness's instrumentation, as spans",
    "sdk": "the SDK inside the harness, at each recorded call",
    "network_proxy": "the proxy, at the only way out",
    "imported": "another tool, whose files were read",
}


def write_overview(site: RunSite) -> None:
    """`index.html` of one run."""
    run = site.run
    rows = effect_rows(run)
    primary = [row for row in rows if row["role"] == "primary"]
    site.page(
        "index.html",
        "overview.html",
        check=site.check,
        alarms=alarms(run, site.check, site.tally),
        warnings=warnings(run),
        primary=primary,
        forest=forest_plot(primary, label="variant") if len({row["effect"] for row in primary}) == 1 else None,
        grades=_grades(site),
        level=(run.grades or {}).get("integration_level") or {},
        levels=sorted(site.tally.levels.items()),
        coverage=coverage(run),
        missing=missing_by_arm(run),
        causes=sorted(site.tally.causes.items()),
        lacking=_lacking(run),
        not_counted=_not_counted(site),
        suspects=_suspects(run),
        suspect_counts=_suspect_counts(run),
        family=site.family,
        exemplars=_exemplars(site),
        variants=variant_lines(run),
        signers=signers(run),
        json_ld=json_ld(run),
        plan=run.resolved.get("analysis_plan") or {},
        design=run.resolved.get("design") or {},
        moments=moments(run, site.tally.first_event),
        counted_by="imported" if run.import_report is not None else "framework_events",
    )


def coverage(run: PublishedRun) -> list[Json]:
    """Each evidence source with how much of the run it covers; an absent one is listed too."""
    found = (run.grades or {}).get("evidence_sources") or {}
    empty = {"present": False, "covered": 0, "total": run.totals["scheduled"]}
    return [{"source": name, "who": SEEN_BY[name], **(found.get(name) or empty)} for name in SOURCES]


def missing_by_arm(run: PublishedRun) -> list[Json]:
    """How trials of each arm ended, counted from rows."""
    arms: dict[str, Counter[str]] = {name: Counter() for name in run.variants}
    for row in run.rows:
        arms[row["variant_id"]]["scheduled"] += 1
        arms[row["variant_id"]][f"status:{row.get('status')}"] += 1
        if row.get("status") == "included":
            arms[row["variant_id"]][f"outcome:{row.get('outcome') or 'none'}"] += 1
    return [{"variant": name, "counts": counts} for name, counts in arms.items()]


def variant_lines(run: PublishedRun) -> list[Json]:
    """Every arm: means of its planned metrics from the analysis, and how its trials ended, counted from rows.

    An outcome is how a trial ended; a metric is what an evaluator measured. A trial may end well with a wrong answer.
    """
    measured = {
        str(item.get("variant_id")): [one for one in item.get("metrics") or [] if one.get("role") != "unplanned"]
        for item in (run.summary or {}).get("variants") or []
    }
    lines = []
    for arm in missing_by_arm(run):
        counts = arm["counts"]
        valid = counts["outcome:success"] + counts["outcome:failure"]
        lines.append(
            {
                "id": arm["variant"],
                "baseline": arm["variant"] == run.baseline,
                "metrics": [
                    {**one, "evidence": run.metric_evidence(one.get("metric"))}
                    for one in measured.get(arm["variant"], [])
                ],
                "ended": counts["outcome:success"],
                "valid": valid,
                "scheduled": counts["scheduled"],
            }
        )
    return lines


def signers(run: PublishedRun) -> list[Json]:
    """Who signed how many statements, and whether the signatures fit the key that the run names."""
    found: dict[tuple[str, bool], list[bool | None]] = {}
    for item in run.statements:
        found.setdefault((item.keyid, item.keyless), []).append(item.valid)
    return [
        {"keyid": keyid, "keyless": keyless, "count": len(valid), "fits": all(one for one in valid)}
        for (keyid, keyless), valid in sorted(found.items())
    ]


def _grades(site: RunSite) -> list[Json]:
    rows = grade_rows(site.run.grades)
    for row in rows:
        counts = site.tally.values[row["name"]]
        row["holds"] = figures.percent(counts.get(row["value"], 0), site.run.totals["scheduled"])
        row["others"] = [item for item in sorted(counts.items()) if item[0] != row["value"]]
        if row["name"] == "provenance" and site.check.provenance not in ("none", row["value"]):
            row["computed"] = site.check.provenance
    return rows


def _lacking(run: PublishedRun) -> int:
    """Trials without a result that counts; the same rows as in the table of outcomes."""
    counted = ("success", "failure")
    return sum(not (row.get("status") == "included" and row.get("outcome") in counted) for row in run.rows)


def _not_counted(site: RunSite) -> list[Json]:
    """Excluded and lost trials by rule and reason, as `inclusion.json` gives them, most frequent first."""
    found: dict[tuple[str, str, str], list[Json]] = {}
    for row in site.run.rows:
        if row.get("status") != "included":
            rule, reason = str(row.get("rule") or "none"), str(row.get("reason") or "no reason is given")
            found.setdefault((str(row.get("status")), rule, reason), []).append(row)
    chosen = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))[: TOP * 4]
    return [
        {
            "status": status,
            "rule": rule,
            "reason": reason,
            "count": len(rows),
            "trial_id": rows[0]["trial_id"],
            "href": site.places.trial(rows[0]).href,
        }
        for (status, rule, reason), rows in chosen
    ]


def _suspects(run: PublishedRun) -> list[Json]:
    found = [item for item in (run.suspects or {}).get("suspects") or [] if isinstance(item, dict)]
    chosen = [item for item in found if item.get("status") == "flagged"]
    chosen.sort(key=lambda item: (item.get("p_adjusted") or 1.0, str(item.get("id"))))
    return chosen[:TOP]


def _suspect_counts(run: PublishedRun) -> Counter[str]:
    """How many associations were looked at, by what came of it: too little evidence is never a quiet all-clear."""
    return Counter(str(item.get("status")) for item in (run.suspects or {}).get("suspects") or [])


def _exemplars(site: RunSite) -> list[Json]:
    hrefs = {row["trial_id"]: site.places.trial(row).href for row in site.run.rows} if site.run.exemplars else {}
    found = [
        with_links({**item, "variant": group.get("variant"), "metric": group.get("metric")}, hrefs)
        for group in (site.run.exemplars or {}).get("groups") or []
        for item in group.get("exemplars") or []
        if item.get("rank") == 1
    ]
    return found[: TOP * 2]


def with_links(item: Json, hrefs: dict[str, str]) -> Json:
    """An exemplar whose trials are linked."""
    pairs = [
        {
            **pair,
            "baseline_href": hrefs.get(str(pair.get("baseline_trial"))),
            "variant_href": hrefs.get(str(pair.get("variant_trial"))),
        }
        for pair in item.get("pairs") or []
    ]
    return {**item, "pairs": pairs}
