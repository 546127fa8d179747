"""What a harness writes and reads during a trial, with nothing but the standard library.

The folder can be copied anywhere (into an image, or beside a harness as `labaudit_sdk`) and imported from there; it
knows no other part of the project and keeps to the syntax of Python 3.8.

    session     one trial: steps, wrapped calls, control, output
    trial       trial_input.json
    manifest    harness_manifest.json
    events      harness_events.jsonl, for harnesses that want nothing but that
    control     /state/lab_control.json
    boundaries  sdk_boundaries.jsonl, and its replay
"""

from __future__ import annotations

from .control import Control, read_control
from .errors import BoundaryError, NotRecordable, ReplayDivergence, SdkError, StopRequested
from .events import EventWriter
from .session import Session
from .trial import Trial

__all__ = [
    "BoundaryError",
    "Control",
    "EventWriter",
    "NotRecordable",
    "ReplayDivergence",
    "SdkError",
    "Session",
    "StopRequested",
    "Trial",
    "read_control",
]
