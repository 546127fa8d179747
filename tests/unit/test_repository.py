"""What is tracked in git says nothing about the machine it was written on, and the lock pins everything by hash."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]

# Written in pieces, so that this file does not find itself.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:wo" r"rk|ro" r"ot|Us" r"ers/\w+|ho" r"me/\w+)/")
REGISTRY = re.compile(
    r"py" r"pi\.org|python" r"hosted\.org|registry\.np" r"mjs|registry\.ya" r"rnpkg|registry-1\.do" r"cker|"
    r"--(?:extra-)?index" r"-url[ =]|--find" r'-links|"resol' r'ved": "http'
)


def tracked_files() -> list[Path]:
    if shutil.which("git") is None or not (TOP / ".git").exists():
        pytest.skip("not a git checkout, so nothing is tracked")
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=TOP, capture_output=True, check=True)
    return [TOP / name for name in listed.stdout.decode().split("\0") if name and (TOP / name).is_file()]


def lines_matching(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if pattern.search(line):
                found.append(f"{path.relative_to(TOP)}:{number}: {line.strip()[:100]}")
    return found


def test_no_tracked_file_names_a_path_of_somebodys_machine() -> None:
    assert lines_matching(MACHINE_PATH) == []
    assert lines_matching(re.compile(re.escape(str(TOP)) + r"\b")) == []


def test_no_tracked_file_names_a_package_registry() -> None:
    assert lines_matching(REGISTRY) == []


def test_the_patterns_find_what_they_look_for() -> None:
    assert MACHINE_PATH.search("open('/" + "root/notes.txt')")
    assert not MACHINE_PATH.search("/workspace/file and the state of /root")
    assert REGISTRY.search("--index" + "-url https://example.invalid/simple")
    assert not REGISTRY.search("uv pip compile --no-emit-index" + "-url")


def test_uv_lock_and_other_lock_formats_with_urls_are_not_tracked() -> None:
    names = {path.name for path in tracked_files()}
    assert not names & {"uv.lock", "poetry.lock", "Pipfile.lock", "yarn.lock"}


def locked_requirements() -> list[str]:
    """The lock's entries, each with its continuation lines joined, comments left out."""
    lines = (TOP / "requirements.lock").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    return [entry.strip() for entry in text.replace("\\\n", " ").splitlines() if entry.strip()]


def test_every_locked_package_is_pinned_and_has_a_hash() -> None:
    entries = locked_requirements()
    assert len(entries) > 50
    pinned = re.compile(r"[a-z0-9._-]+(?:\[[a-z0-9,._-]+\])?==\S+(?: ; [^-]+)?(?:\s+--hash=sha256:[0-9a-f]{64})+")
    assert [entry[:80] for entry in entries if not pinned.fullmatch(entry)] == []


def test_the_lock_has_no_index_line_and_no_url() -> None:
    text = (TOP / "requirements.lock").read_text(encoding="utf-8")
    assert not re.search(r"^\s*--?(?:i|index|extra-index|find|trusted)\b", text, re.MULTILINE)
    assert "://" not in text


def test_the_lock_holds_every_declared_dependency() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        declared += extra
    locked = {re.split(r"[=\[ ]", entry)[0] for entry in locked_requirements()}
    names = {re.split(r"[<>=\[ ;]", item)[0].lower().replace("_", "-") for item in declared}
    assert names - locked == set()
