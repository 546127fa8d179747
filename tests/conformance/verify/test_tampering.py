"""Every folder here is an attack on a signed run, plain and signed over; this runs them and compares the verdicts.

An attack on another target (a bundle, a site, a kept checkpoint, a keyless signature) needs parts that the tests of
that target have: its folder names the test.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from labaudit.attest.keys import PrivateKey
from labaudit.attest.log_key import LogKey
from labaudit.attest.trust_store import LabKeys
from labaudit.store.run_folder import RunFolder
from labaudit.verify.request import Anchors, Request
from labaudit.verify.run_steps import RUN_STEPS
from labaudit.verify.sources import FolderSource
from labaudit.verify.verdict import Report
from labaudit.verify.verify_run import verify_run
from tests.conformance.verify.tampering import Spoiled, spoil
from tests.make_run import MadeRun, RunPlan, make_run
from tests.worker_run import make_worker_run

HERE = Path(__file__).parent
CASES = {path.parent.name.removesuffix("_fail"): yaml.safe_load(path.read_text()) for path in HERE.glob("*/case.yaml")}
WORKERS = 80  # the number of attacks on what workers signed for; they need a run of a worker


def _ways(of_workers: bool) -> list[Any]:
    return [
        pytest.param(name, way, id=f"{name}-{way}")
        for name, case in sorted(CASES.items())
        for way in ("plain", "signed_over")
        if isinstance(case.get(way), dict) and (case["attack"] == WORKERS) is of_workers
    ]


BOTH, BOTH_OF_WORKERS = _ways(of_workers=False), _ways(of_workers=True)
ELSEWHERE = {name: case["tested_by"] for name, case in sorted(CASES.items()) if "tested_by" in case}
# Part A of the list of attacks, by number; there may be more folders than these.
ATTACKS = {
    1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 19, 20, 21, 22, 23, 25, 26, 28, 29, 31, 32, 33, 34, 36, 37, 38,
    39, 40, 41, 43, 44, 45, 46, 48, 49, 50, 52, 53, 55, 56, 57, 60, 61, 62, 63, 64, 66, 67, 68, 70, 71, 72, 74, 77, 78,
}  # fmt: skip


@pytest.fixture(scope="session")
def clean(tmp_path_factory: pytest.TempPathFactory) -> MadeRun:
    """The run that all cases spoil copies of."""
    return make_run(tmp_path_factory.mktemp("clean"))


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory, clean: MadeRun) -> MadeRun:
    """Another run of the same lab, by the same keys."""
    folder = tmp_path_factory.mktemp("other")
    shutil.copytree(clean.lab.keys, folder / ".lab" / "keys")
    return make_run(folder, RunPlan(tasks=2))


@pytest.fixture
def spoiled(clean: MadeRun, other: MadeRun, tmp_path: Path) -> Spoiled:
    """A fresh copy."""
    return copy_of(clean.run, other.run, clean.signing, clean.log_key, tmp_path)


def copy_of(run: RunFolder, other: RunFolder, signing: PrivateKey, log_key: LogKey, folder: Path) -> Spoiled:
    path = folder / run.path.name
    shutil.copytree(run.path, path, symlinks=True)
    rows = [json.loads(line) for line in run.schedule.read_bytes().splitlines()]
    records = [json.loads(run.trial(row["trial_id"]).trial_record.read_bytes()) for row in rows]
    a, b = [record["ids"]["trial_id"] for record in records if record["outcome"] == "success"][:2]
    events = [json.loads(line) for line in run.trial(a).events.read_bytes().splitlines()]
    artifact = next(event["payload_ref"] for event in events if event.get("payload_ref")).rpartition("/")[2]
    return Spoiled(path, other.path, signing, log_key, a, b, artifact)


@pytest.fixture(scope="session")
def by_worker(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, LabKeys]:
    """A run that a worker executed, which the cases of attack 80 spoil copies of."""
    return make_worker_run(tmp_path_factory.mktemp("worker"))


@pytest.fixture
def spoiled_worker(by_worker: tuple[RunFolder, LabKeys], other: MadeRun, tmp_path: Path) -> Spoiled:
    """A fresh copy of the worker's run."""
    run, keys = by_worker
    return copy_of(run, other.run, keys.signing, keys.log, tmp_path)


def check(run: Spoiled, steps: Any = RUN_STEPS) -> Report:
    request = Request(anchors=Anchors(keys=(run.signing.public,)))
    return verify_run(FolderSource(run.path), request, target=str(run.path), steps=steps)


def apply(run: Spoiled, name: str, way: str) -> dict[str, Any]:
    case = CASES[name]
    expected: dict[str, Any] = case[way]
    spoil(run, expected.get("do_instead") or [*case["do"], *expected.get("do", [])])
    return expected


def test_the_clean_run_verifies_and_so_does_its_copy(clean: MadeRun, spoiled: Spoiled) -> None:
    assert check(spoiled).as_json()["findings"] == []
    assert check(spoiled).verdict == "verified"


def test_the_run_of_a_worker_verifies_and_so_does_one_that_was_sealed_again(spoiled_worker: Spoiled) -> None:
    assert check(spoiled_worker).as_json()["findings"] == []
    spoil(spoiled_worker, ["refresh", "reseal"])
    assert check(spoiled_worker).as_json()["findings"] == []


@pytest.mark.parametrize(("name", "way"), BOTH_OF_WORKERS)
def test_an_attack_on_a_receipt_is_found_in_any_order(spoiled_worker: Spoiled, name: str, way: str) -> None:
    found_named_and_placed(spoiled_worker, name, way)
    unmoved_by_order(spoiled_worker, times=5)


@pytest.mark.parametrize(("name", "way"), BOTH)
def test_the_attack_is_found_named_and_placed(spoiled: Spoiled, name: str, way: str) -> None:
    found_named_and_placed(spoiled, name, way)


def found_named_and_placed(spoiled: Spoiled, name: str, way: str) -> None:
    expected = apply(spoiled, name, way)
    report = check(spoiled)
    found = {(finding.code, finding.path) for finding in report.findings}
    wanted = {(item["code"], spoiled.name(item["path"])) for item in expected["findings"]}
    assert wanted <= found, sorted(found)
    assert report.verdict == expected["verdict"], sorted(found)
    assert report.exit_code == {"failed": 1, "malformed": 2, "policy_unmet": 3}[expected["verdict"]]
    assert not (spoiled.path.parent / "inspected").exists(), "a command of the layout was run"


@pytest.mark.parametrize("name", ["event_edited", "grade_raised", "layout_inspects", "manifest_path_twice"])
def test_the_order_of_steps_decides_nothing(spoiled: Spoiled, name: str) -> None:
    shuffled(spoiled, name, "signed_over", times=20)


@pytest.mark.acceptance
@pytest.mark.parametrize(("name", "way"), BOTH)
def test_the_order_of_steps_decides_nothing_for_any_attack(spoiled: Spoiled, name: str, way: str) -> None:
    shuffled(spoiled, name, way, times=20)


def shuffled(run: Spoiled, name: str, way: str, times: int) -> None:
    apply(run, name, way)
    unmoved_by_order(run, times)


def unmoved_by_order(run: Spoiled, times: int) -> None:
    first = check(run)
    for seed in range(times):
        steps = list(RUN_STEPS)
        random.Random(seed).shuffle(steps)
        again = check(run, steps)
        assert (again.verdict, set(again.findings)) == (first.verdict, set(first.findings))


def test_every_case_says_which_attack_it_is_and_why_it_is_not_signed_over() -> None:
    for name, case in CASES.items():
        assert isinstance(case["attack"], int), name
        assert case["says"], name
        assert "tested_by" in case or isinstance(case["signed_over"], dict | str), name


def test_every_attack_has_a_folder() -> None:
    assert {case["attack"] for case in CASES.values()} >= ATTACKS


@pytest.mark.parametrize("test", ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_a_test_that_a_folder_names_is_there(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"\ndef {name}(" in (HERE.parents[2] / file).read_text("utf-8")
