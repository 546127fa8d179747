"""Documents of any shape: a site is built or refused with a sentence, never with a traceback."""

from __future__ import annotations

import copy
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from labaudit.core.canonical import canonical_bytes
from labaudit.errors import LabauditError
from labaudit.site import build_site
from labaudit.site.reading.run_check import RunCheck
from tests.make_run import RunPlan, make_run
from tests.unit.site.test_pages import Page

ODD = [None, True, 0, -1, 1.5, "", "<b>", "x" * 5000, [], {}, [[]], {"a": {"b": []}}, "../..", 10**15]
FAILED = RunCheck("failed", [{"code": "digest_mismatch", "path": "x", "message": "made for this test", "next": ""}])


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at] if at else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        found += places(part, (*at, key))
    return found


def broken(value: Any, rng: random.Random) -> Any:
    """The same document with one part replaced or removed."""
    value = copy.deepcopy(value)
    *way, last = rng.choice(places(value))
    target = value
    for key in way:
        target = target[key]
    if rng.random() < 0.3:
        del target[last]
    else:
        target[last] = rng.choice(ODD)
    return value


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("broken"), RunPlan(tasks=2, events=3)).run.path


def documents(run: Path) -> list[str]:
    trial = next(path for path in sorted((run / "trials").iterdir()) if (path / "metrics.json").is_file())
    names = ["trial_record", "metrics", "grades", "trial_output", "state_inventory"]
    at_run = ["resolved_experiment", "inclusion", "grades", "attestation", "analysis/summary", "analysis/comparisons",
              "analysis/exemplars", "analysis/suspects", "manifest", "attestations/grades.sigstore"]  # fmt: skip
    return [f"{name}.json" for name in at_run] + [f"trials/{trial.name}/{name}.json" for name in names]


def try_to_build(run: Path, folder: Path, rng: random.Random, rounds: int) -> int:
    """How many broken runs still gave a site; anything but a site or an expected error is raised."""
    built = 0
    for _ in range(rounds):
        name = rng.choice(documents(run))
        original = (run / name).read_bytes()
        (run / name).write_bytes(canonical_bytes(broken(json.loads(original), rng)))
        try:
            site = build_site([run], folder / "site", checks=[FAILED], allow_failed=True, bundle=False)
            assert "does not hold" in "".join(Page(site.front_page).text)
            built += 1
        except LabauditError:
            pass
        finally:
            (run / name).write_bytes(original)
    return built


@pytest.mark.parametrize("seed", range(4))
def test_a_document_with_one_broken_part_never_breaks_the_builder(run, tmp_path, seed):
    copied = tmp_path / "run"
    shutil.copytree(run, copied)
    assert try_to_build(copied, tmp_path, random.Random(seed), 12) > 0


@pytest.mark.acceptance
def test_hundreds_of_broken_documents_never_break_the_builder(run, tmp_path):
    copied = tmp_path / "run"
    shutil.copytree(run, copied)
    assert try_to_build(copied, tmp_path, random.Random(4711), 300) > 100


def test_files_that_are_no_json_are_named_on_the_front_page(run, tmp_path):
    copied = tmp_path / "run"
    shutil.copytree(run, copied)
    (copied / "grades.json").write_bytes(b"\xff\xfe")
    (copied / "analysis" / "suspects.json").unlink()
    trial = next(path for path in sorted((copied / "trials").iterdir()) if (path / "events.jsonl").is_file())
    (trial / "events.jsonl").write_bytes(b"not json\n\xff\n")
    site = build_site([copied], tmp_path / "site", checks=[FAILED], allow_failed=True)
    text = "".join(Page(site.front_page).text)
    assert "grades.json cannot be read" in text
    assert "suspects.json is listed in the manifest and missing" in text
    assert f"Trial {trial.name}" in text


def test_a_run_level_file_that_a_host_could_serve_as_a_page_is_withheld(tmp_path):
    evil = {"note.html": b"<script>alert(1)</script>", "analysis/pic.svg": b"<svg onload='alert(1)'/>"}
    made = make_run(tmp_path, RunPlan(tasks=1, lost=frozenset(), extra_files=evil))
    site = build_site([made.run.path], tmp_path / "site", allow_failed=True)
    assert not list((site.path / "files").rglob("*.html"))
    assert not list((site.path / "files").rglob("*.svg"))
    assert "note.html (withheld, digest only)" in "".join(Page(site.path / "downloads.html").text)
