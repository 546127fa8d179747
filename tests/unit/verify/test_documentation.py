"""docs/verify.md lists every step and every reason code, with the verdict that the code has."""

from __future__ import annotations

import re
from pathlib import Path

from labaudit.verify.reasons import REASONS
from labaudit.verify.run_steps import ANALYSIS, RUN_STEPS, SIGNATURES
from labaudit.verify.verdict import EXIT_CODES

PAGE = (Path(__file__).parents[3] / "docs" / "verify.md").read_text("utf-8")


def test_every_reason_code_is_documented_with_its_verdict() -> None:
    documented = dict(re.findall(r"^\| `([a-z_]+)` \| (failed|malformed|policy_unmet) \| .+ \|$", PAGE, re.M))
    assert documented == {code: reason.weight for code, reason in REASONS.items()}


def test_every_step_is_documented_by_number_and_name() -> None:
    documented = [(int(number), name) for number, name in re.findall(r"^\| (\d+) \| ([^|]+) \|$", PAGE, re.M)]
    assert documented[1:] == [(step.number, step.name) for step in RUN_STEPS]


def test_verdicts_and_exit_codes_are_documented() -> None:
    documented = dict(re.findall(r"^\| `(\w+)` \| (\d) \|", PAGE, re.M))
    assert {name: int(code) for name, code in documented.items()} == EXIT_CODES


def test_steps_are_numbered_in_order_and_the_named_ones_are_where_they_are_said_to_be() -> None:
    assert [step.number for step in RUN_STEPS] == list(range(1, len(RUN_STEPS) + 1))
    names = {step.number: step.name for step in RUN_STEPS}
    assert names[ANALYSIS] == "the analysis follows from the trials"
    assert [names[number] for number in SIGNATURES][1] == "signatures hold"
    assert names[len(RUN_STEPS)] == "the policy is met"
