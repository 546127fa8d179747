"""lab_control.json: what the runner asks of a harness at its next step end."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from labaudit.records.base import Record
from labaudit.records.fields import ControlAction, Count


class ControlFile(Record):
    """One request; the sha256 of its bytes is the control_version that a control_ack must name."""

    format_version: Literal["control_plane_v1"] = "control_plane_v1"
    control_seq: Count
    action: ControlAction
    label: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
