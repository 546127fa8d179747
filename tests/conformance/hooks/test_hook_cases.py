"""Every folder beside this file is one hook stream with its expected verdict, strict and not strict.

A name that ends in `_fail` must be refused. `expected.json` names each broken rule with how often it is broken.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from labaudit.cli.hooks_validate_command import hooks_validate
from labaudit.errors import Contradiction
from labaudit.evidence import hook_rules
from labaudit.evidence.control_history import read_control_history
from labaudit.evidence.harness_manifest import HarnessManifest
from labaudit.evidence.hook_collector import HookCollector, HookCounts, HookStream
from labaudit.evidence.observation import NotObserved
from labaudit.evidence.observe import observed_hooks

HERE = Path(__file__).parent
CASES = sorted(path.name for path in HERE.iterdir() if (path / "expected.json").is_file())


def collect(case: Path, *, strict: bool) -> HookStream:
    return HookCollector().collect(
        case / "harness_events.jsonl",
        HarnessManifest.load(case / "harness_manifest.json"),
        json.loads((case / "trial_input.json").read_bytes())["ids"],
        read_control_history(case / "control.jsonl"),
        strict=strict,
    )


def expectation(case: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((case / "expected.json").read_bytes())
    return value


@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
@pytest.mark.parametrize("name", CASES)
def test_the_stream_gets_the_expected_verdict(name: str, strict: bool) -> None:
    case, expected = HERE / name, expectation(HERE / name)
    stream = collect(case, strict=strict)
    assert (stream.verdict, dict(stream.findings_by_rule)) == (expected["verdict"], expected["findings_by_rule"])
    assert stream.valid is not name.endswith("_fail")
    seen = observed_hooks(stream)
    assert seen.fails_trial is (strict and name.endswith("_fail"))
    if stream.valid:
        assert isinstance(stream.counts, HookCounts)
        for key, value in expected.get("counts", {}).items():
            assert getattr(stream.counts, key) == value, key
        stream.require_valid()
    else:
        assert isinstance(seen.turn_count, NotObserved)
        assert isinstance(seen.step_count, NotObserved)
        with pytest.raises(Contradiction):
            stream.require_valid()


@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
@pytest.mark.parametrize("name", CASES)
def test_the_command_ends_with_the_documented_code(name: str, strict: bool) -> None:
    case, verdict = HERE / name, expectation(HERE / name)["verdict"]
    arguments = [str(case / "harness_events.jsonl"), "--manifest", str(case / "harness_manifest.json"), "--json"]
    arguments += ["--trial-input", str(case / "trial_input.json"), "--control-log", str(case / "control.jsonl")]
    result = CliRunner().invoke(hooks_validate, [*arguments, *(["--strict"] if strict else [])])
    code = {"valid": 0, "degraded": int(strict), "invalid": 1, "unreadable": 2}[verdict]
    assert result.exit_code == code, result.output
    report = json.loads(result.stdout)
    assert report["verdict"] == verdict
    assert report["unchecked"] == []
    assert (report["counts"] is None) is name.endswith("_fail")


def test_every_rule_has_a_case_that_breaks_it() -> None:
    broken = {rule for name in CASES for rule in expectation(HERE / name)["findings_by_rule"]}
    rules = {rule.id for rules in hook_rules.RULES.values() for rule in rules}
    assert broken == rules | {"F1", "F2"}


def test_a_rule_is_broken_once_where_the_case_is_named_after_it() -> None:
    for name in CASES:
        rule = name.split("_")[0]
        if rule[1:].isdigit():
            assert rule in expectation(HERE / name)["findings_by_rule"], name
