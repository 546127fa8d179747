"""A trial reading to its page: outcome, grades with the caps that lowered them, timeline, events, files, artifacts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from labaudit.core.digest import hex_of_reference, sha256_hex
from labaudit.errors import BadInput
from labaudit.site.drawing import charts, figures
from labaudit.site.drawing.places import Place, Places, up
from labaudit.site.drawing.plain_text import Excerpt, shorten
from labaudit.site.drawing.templates import render
from labaudit.site.reading.published_run import GRADE_NAMES, SOURCES, PublishedRun, evidence_of_metric
from labaudit.site.reading.trial_reading import TrialReading

Json = dict[str, Any]
EVENTS_PER_PAGE = 200
ARTIFACTS_SHOWN = 40
ANSWER = 1000
PREVIEW = 64


@dataclass(frozen=True)
class Neighbours:
    """The trials before and after in schedule order, and those of the same task and replicate in other arms."""

    before: Json | None
    after: Json | None
    paired: Sequence[Json]


def trial_context(
    run: PublishedRun, reading: TrialReading, places: Places, near: Neighbours, check: str | None
) -> Json:
    """All that the trial templates print; `check` is the data file for the check in the reader's browser."""
    row, record = reading.row, reading.record or {}
    events, start, end = _events(reading)
    present = [source for source in SOURCES if any(event["source"] == source for event in events)]
    present += sorted({event["source"] for event in events} - set(present))
    pages = max(1, -(-len(events) // EVENTS_PER_PAGE))
    return {
        "row": row,
        "record": record,
        "record_sha256": _sha(reading),
        "problems": reading.problems,
        "seconds": figures.elapsed(record.get("started_at"), record.get("ended_at")),
        "grades": grade_rows(reading.grades),
        "level": (reading.grades or {}).get("integration_level") or {},
        "coverage": (reading.grades or {}).get("evidence_sources") or {},
        "caveats": (reading.grades or {}).get("caveats") or [],
        "metrics": _metrics(reading.metrics),
        "record_size": len(reading.record_bytes) if reading.record_bytes else None,
        "answer": _answer(reading.output),
        "outputs": [(name, shot) for name, shot in (("stdout", reading.stdout), ("stderr", reading.stderr)) if shot],
        "timeline": charts.timeline(events, present, start, end),
        "events": events[:EVENTS_PER_PAGE],
        "all_events": events,
        "event_count": len(events),
        "event_pages": [places.more_events(row, number) for number in range(2, pages + 1)],
        "has_previews": any(event["preview"] for event in events),
        "network": network_rows(reading.network),
        "files": record.get("files") or [],
        "artifacts": reading.artifacts[:ARTIFACTS_SHOWN],
        "artifact_count": len(reading.artifacts),
        "before": near.before and {"row": near.before, "href": places.trial(near.before).href},
        "after": near.after and {"row": near.after, "href": places.trial(near.after).href},
        "paired": [{"row": other, "href": places.trial(other).href} for other in near.paired],
        "prefix": places.trial(row).event_prefix,
        "check": check,
        "proof": run.folder.proof(reading.trial_id).is_file(),
        "a2a": reading.a2a,
    }


def render_trial(frame: Json, place: Place, contexts: Sequence[Json]) -> bytes:
    """The page of one trial, or of all replicates of a task and variant."""
    return render("trial.html", **frame, run_root=up(place.path), trials=contexts, alone=not place.anchor)


def render_more_events(frame: Json, context: Json, place: Place) -> Iterator[tuple[str, bytes]]:
    """The further pages of a long event list."""
    for number, path in enumerate(context["event_pages"], start=2):
        first = (number - 1) * EVENTS_PER_PAGE
        yield (
            path,
            render(
                "trial_events.html",
                **frame,
                run_root=up(path),
                trial=context,
                home=place.href,
                number=number,
                part=context["all_events"][first : first + EVENTS_PER_PAGE],
            ),
        )


def grade_rows(grades: Json | None) -> list[Json]:
    """The five grades in their order; a missing document gives rows that say so."""
    rows = []
    for name in GRADE_NAMES:
        found = (grades or {}).get(name)
        found = found if isinstance(found, dict) else {"value": "not_observed", "caps": [], "evidence": []}
        rows.append({"name": name, **found})
    return rows


def network_rows(decisions: Sequence[Json]) -> list[Json]:
    """Proxy decisions added up by host, port and decision."""
    totals: dict[tuple[str, str, str, str], list[int]] = {}
    for item in decisions:
        key = tuple(str(item.get(name)) for name in ("decision", "host", "port", "rule"))
        times = item.get("count", 1)
        entry = totals.setdefault(key, [0, 0, 0])  # type: ignore[arg-type]
        entry[0] += times if isinstance(times, int) else 1
        for place, name in ((1, "bytes_up"), (2, "bytes_down")):
            value = item.get(name)
            entry[place] += value if isinstance(value, int) else 0
    return [
        {"decision": key[0], "host": key[1], "port": key[2], "rule": key[3], "count": n, "up": sent, "down": received}
        for key, (n, sent, received) in sorted(totals.items())
    ]


def _events(reading: TrialReading) -> tuple[list[Json], float, float]:
    first = None
    rows: list[Json] = []
    last = ""
    for number, event in enumerate(reading.events):
        if event.get("unreadable"):
            rows.append(_row(number, None, "unreadable line", "none", None, "", None))
            continue
        when = figures.moment(event.get("ts"))
        first = first or when
        at = (when - first).total_seconds() if when and first else None
        chain = event.get("hashchain")
        own = str(chain.get("self", "")) if isinstance(chain, dict) else ""
        shot = reading.previews.get(str(event.get("payload_ref")))
        kind, source = str(event.get("event_type")), str(event.get("source"))
        row = _row(number, at, kind, source, event.get("step_index"), own, shot)
        payload = _hex(event.get("payload_ref"))
        repeated = bool(payload) and payload == last
        row["payload"], last = ("same" if repeated else payload), payload
        row["preview"] = "" if repeated else row["preview"]
        redaction = event.get("redaction")
        if isinstance(redaction, dict) and redaction.get("applied"):
            row["redacted"] = redaction.get("mode") or "yes"
        rows.append(row)
    times = [row["at"] for row in rows if row["at"] is not None]
    return rows, min(times, default=0.0), max(times, default=0.0)


def _row(seq: int, at: float | None, kind: str, source: str, step: object, own: str, shot: Excerpt | None) -> Json:
    preview = ""
    if shot is not None and shot.kind == "text":
        preview = shorten(" ".join(shot.text.split()), PREVIEW)
    return {
        "seq": seq, "at": at, "type": kind, "source": source, "step": step, "own": own[:12], "preview": preview,
        "payload": "", "redacted": "",
    }  # fmt: skip


def _hex(reference: object) -> str:
    try:
        return hex_of_reference(str(reference))[:12] if reference else ""
    except BadInput:
        return ""


def _sha(reading: TrialReading) -> str:
    return sha256_hex(reading.record_bytes) if reading.record_bytes else ""


def _metrics(document: Json | None) -> list[Json]:
    if document is None:
        return []
    values, sources, missing = (document.get(name) or {} for name in ("metrics", "sources", "missing"))
    own = document.get("self_reported") or []
    return [
        {
            "name": name,
            "value": values.get(name),
            "source": sources.get(name),
            "missing": missing.get(name),
            "self_reported": name in own,
            "evidence": evidence_of_metric(str(sources.get(name) or "")),
        }
        for name in sorted({*values, *missing})
    ]


def _answer(output: Json | None) -> Json | None:
    if output is None:
        return None
    answer, error = output.get("answer"), output.get("error")
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, sort_keys=True)
    problem = error.get("message") if isinstance(error, dict) else error
    return {
        "present": "answer" in output,
        "text": shorten(text, ANSWER),
        "size": len(text),
        "error": shorten(str(problem), ANSWER) if problem else "",
    }
