"""The project's own contract types, tried on graphs small enough to see the answer."""

from __future__ import annotations

import configparser
from pathlib import Path

import grimp
import pytest

from scripts.import_contracts import OneDoor, StandardLibraryOnly

TOP = Path(__file__).resolve().parents[2]


@pytest.fixture
def graph() -> grimp.ImportGraph:
    """A package with an innocent module, one that goes outside, and two that use a foreign library."""
    made = grimp.ImportGraph()
    for name in ("lab", "lab.sdk", "lab.sdk.step", "lab.errors", "lab.engines.docker.client", "lab.runner"):
        made.add_module(name)
    for name in ("json", "docker", "yaml"):
        made.add_module(name, is_squashed=True)

    def imports(importer: str, imported: str, line: int) -> None:
        made.add_import(importer=importer, imported=imported, line_number=line, line_contents=f"import {imported}")

    imports("lab.sdk", "lab.sdk.step", 1)
    imports("lab.sdk.step", "json", 2)
    imports("lab.engines.docker.client", "docker", 3)
    return made


def add(graph: grimp.ImportGraph, importer: str, imported: str) -> None:
    graph.add_import(importer=importer, imported=imported, line_number=7, line_contents=f"import {imported}")


def standard_library_only(package: str) -> StandardLibraryOnly:
    return StandardLibraryOnly("n", {"root_packages": ["lab"]}, {"packages": [package]})


def one_door() -> OneDoor:
    options = {"libraries": ["docker"], "doors": ["lab.engines.docker*"]}
    return OneDoor("n", {"root_packages": ["lab"]}, options)


def test_the_standard_library_and_the_own_package_are_fine(graph: grimp.ImportGraph) -> None:
    assert standard_library_only("lab.sdk").check(graph, verbose=False).kept


@pytest.mark.parametrize("imported", ["yaml", "lab.errors"])
def test_a_foreign_library_or_another_part_of_the_project_is_refused(graph: grimp.ImportGraph, imported: str) -> None:
    add(graph, "lab.sdk.step", imported)
    check = standard_library_only("lab.sdk").check(graph, verbose=False)
    assert not check.kept
    assert check.metadata["found"] == {("lab.sdk.step", imported): [7]}


def test_a_package_that_is_gone_is_not_a_pass(graph: grimp.ImportGraph) -> None:
    assert not standard_library_only("lab.kds").check(graph, verbose=False).kept


def test_the_library_may_enter_by_its_door(graph: grimp.ImportGraph) -> None:
    assert one_door().check(graph, verbose=False).kept


def test_the_library_may_not_enter_elsewhere(graph: grimp.ImportGraph) -> None:
    add(graph, "lab.runner", "docker")
    check = one_door().check(graph, verbose=False)
    assert not check.kept
    assert check.metadata["found"] == {("lab.runner", "docker"): [7]}


def test_every_package_of_the_project_has_a_layer() -> None:
    config = configparser.ConfigParser()
    config.read(TOP / ".importlinter")
    contract = config["importlinter:contract:layers"]
    assert contract["exhaustive"] == "True"
    named = {name.strip() for line in contract["layers"].split("\n") for name in line.split("|") if name.strip()}
    there = {path.name for path in (TOP / "labaudit").iterdir() if (path / "__init__.py").exists()}
    modules = {path.stem for path in (TOP / "labaudit").glob("*.py")} - {"__init__", "__main__"}
    assert there | modules <= named
