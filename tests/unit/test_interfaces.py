"""docs/interfaces.md against the code: every listed place exists, and nothing that exists is called missing."""

from __future__ import annotations

import importlib
import re

import pytest

from scripts import interfaces

PAGE = interfaces.PAGE.read_text(encoding="utf-8")
BUILT_PART, _, MISSING_PART = PAGE.partition(interfaces.NOT_BUILT)
BUILT = re.findall(r"^\| `([\w.]+)` \| `([\w.]+):([\w.]+)` \|", BUILT_PART, re.MULTILINE)
MISSING = re.findall(r"^\| `([\w.]+)` \|", MISSING_PART, re.MULTILINE)


def test_the_page_lists_every_interface_exactly_once() -> None:
    on_page = [name for name, _, _ in BUILT] + MISSING
    assert sorted(on_page) == sorted(interface.name for interface in interfaces.listed())


def test_the_specifications_are_listed_whole() -> None:
    counts = {title: len(rows) for title, rows in interfaces.LISTED.items()}
    assert list(counts.values()) == [23, 24, 7]


@pytest.mark.parametrize(("name", "module", "attribute"), BUILT, ids=[name for name, _, _ in BUILT])
def test_a_listed_place_can_be_imported(name: str, module: str, attribute: str) -> None:
    assert attribute == name
    owner_name, _, member = attribute.partition(".")
    owner = getattr(importlib.import_module(module), owner_name)
    assert not member or interfaces.has_member(owner, member)


@pytest.mark.parametrize("interface", interfaces.listed(), ids=lambda interface: interface.name)
def test_what_is_called_not_built_is_nowhere_in_the_package(interface: interfaces.Interface) -> None:
    place = interfaces.locate(interface)
    if interface.name in MISSING:
        assert place is None, f"{place} exists: run `make docs` so that the page says so"
    else:
        assert place is not None


def test_a_member_that_does_not_exist_is_not_found() -> None:
    absent = interfaces.Interface("none", "EventHasher", "no_such_method", "")
    assert interfaces.locate(absent) is None
