"""trial_input.json to what a harness needs of it: the task, the bindings, and where to write."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from .errors import SdkError

INPUT_VARIABLE = "LABAUDIT_TRIAL_INPUT"
OUTPUT_VARIABLE = "LABAUDIT_TRIAL_OUTPUT"
REPLAY_VARIABLE = "LABAUDIT_REPLAY_BOUNDARIES"
UNTIL_VARIABLE = "LABAUDIT_REPLAY_UNTIL_STEP"
DEFAULT_INPUT = "/in/trial_input.json"


class Trial:
    """One trial as the harness sees it."""

    def __init__(self, value: dict[str, Any]) -> None:
        try:
            self.ids: dict[str, Any] = dict(value["ids"])
            self.task: dict[str, Any] = value["task"]
            self.bindings: dict[str, Any] = value["bindings"]
            runtime = value["runtime"]
            self.paths: dict[str, str] = dict(runtime["paths"])
            control = runtime["control_plane"]
            self.out = self.paths["out"]
        except (KeyError, TypeError) as error:
            raise SdkError(f"trial_input.json is no trial_input_v1: {error}") from error
        self.value = value
        fork = (value.get("ext") or {}).get("fork")
        self.fork: dict[str, Any] = dict(fork) if isinstance(fork, dict) else {}
        """Of a forked trial: at_step, prefix_bindings and, from a checkpoint, restored; empty for any other."""
        self.budgets: dict[str, int] = dict(runtime.get("budgets") or {})
        self.control_path: str = control.get("path") or str(Path(self.paths["state"]) / "lab_control.json")
        self.output_path = os.environ.get(OUTPUT_VARIABLE) or self.in_out("trial_output.json")

    @classmethod
    def load(cls, path: str | None = None) -> Trial:
        """The trial at `path`, or where the environment says, or where a container has it."""
        place = path or os.environ.get(INPUT_VARIABLE) or DEFAULT_INPUT
        try:
            value = json.loads(Path(place).read_bytes())
        except (OSError, ValueError) as error:
            raise SdkError(f"{place}: {error}") from error
        return cls(value)

    def bindings_at(self, step: int) -> dict[str, Any]:
        """The bindings that hold in a step: a fork has its parent's until the step it was forked at."""
        if self.fork and step < self.fork["at_step"]:
            return dict(self.fork["prefix_bindings"])
        return self.bindings

    def in_out(self, name: str) -> str:
        """A file of the out folder."""
        return str(Path(self.out) / name)
