"""Names of runs, variants and trials to stable page addresses, all relative to the run's own root in the site."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from labaudit.core.ids import safe_name

Json = dict[str, Any]
# Above this number of trials, one page holds all replicates of a task and variant.
GROUPED_ABOVE = 20_000


@dataclass(frozen=True)
class Place:
    """A trial's page and the anchor on it; `anchor` is empty when the page is the trial's alone."""

    path: str
    anchor: str

    @property
    def href(self) -> str:
        """The address from the run's root."""
        return f"{self.path}#{self.anchor}" if self.anchor else self.path

    @property
    def event_prefix(self) -> str:
        """What stands before `e<seq>` in the anchors of this trial's events."""
        return f"{self.anchor}-" if self.anchor else ""


class Places:
    """Addresses of one run's trials and variants."""

    def __init__(self, rows: Sequence[Json], *, grouped: bool | None = None) -> None:
        self.grouped = len(rows) > GROUPED_ABOVE if grouped is None else grouped

    def trial(self, row: Json) -> Place:
        """Where a trial stands."""
        if not self.grouped:
            return Place(f"trials/{row['trial_id']}.html", "")
        stamp = hashlib.sha256(f"{row['variant_id']}\0{row['task_id']}".encode("utf-8", "surrogatepass")).hexdigest()
        stem = f"{safe_name(row['variant_id'])}.{safe_name(row['task_id'])}-{stamp[:8]}"
        return Place(f"trials/{stem}.html", f"r{row['repl_idx']}")

    def more_events(self, row: Json, page: int) -> str:
        """The further pages of a long event list."""
        return f"trials/{row['trial_id']}.p{page}.html"


def variant_page(variant_id: str) -> str:
    """The page of one arm."""
    return f"variants/{safe_name(variant_id)}.html"


def table_page(number: int) -> str:
    """The pages of the trials table: `trials.html`, `trials-p2.html` and so on."""
    return "trials.html" if number == 1 else f"trials-p{number}.html"


def up(path: str) -> str:
    """The way from a page back to the folder that its path is relative to."""
    return "../" * path.count("/")
