"""The measurable part of the style guide in CONTRIBUTING.md: sizes, names and docstrings of the package's files."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
SOURCES = sorted((TOP / "labaudit").rglob("*.py"))
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc", "models"}


def relative(path: Path) -> str:
    return str(path.relative_to(TOP))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_there_are_sources_to_look_at() -> None:
    assert len(SOURCES) > 20


def test_every_file_says_what_it_is_for() -> None:
    silent = [relative(path) for path in SOURCES if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert silent == []


def test_no_file_is_longer_than_one_idea() -> None:
    lengths = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_FILE_LINES} == {}


def test_no_function_is_longer_than_a_screen() -> None:
    long = {}
    for path in SOURCES:
        for function in functions(path):
            lines = (function.end_lineno or 0) - function.lineno + 1
            if lines > MAX_FUNCTION_LINES:
                long[f"{relative(path)}:{function.lineno} {function.name}"] = lines
    assert long == {}


def test_files_are_named_by_the_domain() -> None:
    assert [relative(path) for path in SOURCES if path.stem in EMPTY_NAMES] == []


@pytest.mark.parametrize("folder", ["unit", "property", "docker", "journeys"])
def test_test_files_with_the_same_name_do_not_shadow_each_other(folder: str) -> None:
    # importmode=importlib names a module after its path; an __init__.py among the tests would change that.
    assert [relative(path) for path in (TOP / "tests" / folder).rglob("__init__.py")] == []
