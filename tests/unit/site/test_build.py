"""The site as a whole: complete, reproducible, in place at once or not at all."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from labaudit.errors import BadInput, Contradiction
from labaudit.site import build_site


def tree(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_every_scheduled_trial_has_a_page_and_the_index_lists_every_file(made, tmp_path):
    built = build_site([made.run.path], tmp_path / "site")
    index = json.loads((built.path / "index.json").read_bytes())
    listed = {item["path"]: item["sha256"] for item in index["files"]}
    there = tree(built.path)
    apart = {"index.json", "SHA256SUMS", "site.sigstore.json"}
    assert listed == {
        path: digest for path, digest in there.items() if path not in apart and not path.startswith("log/")
    }
    rows = json.loads(made.run.inclusion.read_bytes())["rows"]
    assert {f"trials/{row['trial_id']}.html" for row in rows} <= set(listed)
    assert built.index_sha256 == there["index.json"]


def test_two_builds_in_other_folders_and_with_other_hash_seeds_are_byte_identical(made, tmp_path):
    moved = tmp_path / "elsewhere" / "renamed"
    shutil.copytree(made.run.path, moved)
    build_site([made.run.path], tmp_path / "one")
    code = "import sys; from pathlib import Path; from labaudit.site import build_site; "
    code += "build_site([Path(sys.argv[1])], Path(sys.argv[2]))"
    command = [sys.executable, "-c", code, str(moved), str(tmp_path / "two")]
    subprocess.run(command, check=True, env={"PYTHONHASHSEED": "4711", "TZ": "Asia/Tokyo", "LC_ALL": "C"})
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


def test_a_folder_that_holds_something_else_is_never_replaced(made, tmp_path):
    out = tmp_path / "mine"
    out.mkdir()
    (out / "thesis.txt").write_text("dear")
    with pytest.raises(BadInput):
        build_site([made.run.path], out)
    assert (out / "thesis.txt").read_text() == "dear"


def test_a_site_is_replaced_whole_and_leaves_nothing_beside_it(made, tmp_path):
    out = tmp_path / "site"
    build_site([made.run.path], out)
    (out / "stray.html").write_text("old")
    build_site([made.run.path], out)
    assert not (out / "stray.html").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_run_that_does_not_hold_is_refused_and_nothing_is_written(made, tmp_path):
    broken = tmp_path / "run"
    shutil.copytree(made.run.path, broken)
    (broken / "grades.json").write_bytes((broken / "grades.json").read_bytes().replace(b"bounded", b"sealed!"))
    with pytest.raises(Contradiction) as caught:
        build_site([broken], tmp_path / "site")
    assert caught.value.exit_code == 1
    assert "grades.json" in str(caught.value)
    assert not (tmp_path / "site").exists()


def test_a_run_that_does_not_hold_says_so_first_when_it_is_published_anyway(made, tmp_path):
    broken = tmp_path / "run"
    shutil.copytree(made.run.path, broken)
    (broken / "grades.json").write_bytes((broken / "grades.json").read_bytes().replace(b"bounded", b"sealed!"))
    built = build_site([broken], tmp_path / "site", allow_failed=True)
    page = built.front_page.read_text("utf-8")
    assert 0 < page.index("does not hold") < page.index("Primary effect")


def test_a_site_cannot_stand_inside_the_run_it_shows(made):
    with pytest.raises(BadInput):
        build_site([made.run.path], made.run.path / "site")
