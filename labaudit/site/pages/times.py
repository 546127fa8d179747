"""A run to the four moments that a reviewer asks for, each with who tells it and how far that carries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from labaudit.core.clock import rfc3339
from labaudit.site.drawing import figures
from labaudit.site.reading.published_run import PublishedRun
from labaudit.site.reading.registration import Registration, read_registration

Json = dict[str, Any]


def moments(run: PublishedRun, first_event: datetime | None) -> list[Json]:
    """Registered, plan signed, first event, sealed: a clock that nobody else witnessed is called what it is."""
    told = read_registration(run)
    source = "imported" if run.import_report is not None else "framework_events"
    return [
        _registered(told, first_event),
        _plan_signed(told, bool(run.statements)),
        {
            "what": "first event",
            "when": figures.clock(rfc3339(first_event)) if first_event else figures.NONE,
            "evidence": source if first_event else "none",
            "how": "The earliest event of all trials. Each log's chain starts from the plan's digest."
            if first_event
            else "No trial left an event.",
        },
        {
            "what": "run sealed",
            "when": figures.clock(run.manifest.get("created_at")),
            "evidence": "framework_events",
            "how": "The manifest says so, by the clock of the machine that sealed it.",
        },
    ]


def _registered(told: Registration, first_event: datetime | None) -> Json:
    if told.at is None:
        how, evidence = "The run's id tells no time.", "none"
    elif not told.fits_plan:
        how, evidence = "The time in the run's id, which does not carry this plan's digest: it may be any.", "none"
    elif not told.fits(first_event):
        how, evidence = "The time in the run's id, yet an event is older: one of the two is wrong.", "none"
    else:
        evidence = "framework_events"
        how = (
            "The time in the run's id, which ends with the first 8 digits of the plan's digest and stands in the"
            " manifest. It is the clock of the machine that ran it; no third party witnessed it."
        )
    return {
        "what": "plan registered",
        "when": figures.clock(rfc3339(told.at)) if told.at else figures.NONE,
        "evidence": evidence,
        "how": how,
    }


def _plan_signed(told: Registration, signed: bool) -> Json:
    row: Json = {"what": "plan signed", "when": "no time", "evidence": "none", "href": ""}
    if not told.link:
        row["how"] = "No signed link names this plan." if signed else "Nobody signed this run."
        return row
    fits = {True: "It fits the key that the run names.", False: "Its signature does not fit.", None: "Not checked."}
    row["href"] = f"files/{told.link}"
    row["how"] = (
        f"The signed link of the step resolve names this plan's digest. {fits[told.link_valid]} A link carries no time:"
        " that it was signed before the first trial is the publisher's word."
    )
    return row
