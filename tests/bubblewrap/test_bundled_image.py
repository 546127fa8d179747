"""The bundled image: the same id from the same packages, and a working one where there are no packages."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from labaudit.engines.bubblewrap.engine import BubblewrapEngine
from labaudit.engines.images import cache as cache_module
from labaudit.engines.images.archive import read_archive, unpack, write_archive
from labaudit.engines.images.cache import BUNDLED_TAG, ENV, ImageCache
from labaudit.engines.images.debian import compile_tree
from labaudit.errors import EnvironmentLacks
from tests.engine_contract import python

pytestmark = pytest.mark.bubblewrap


def test_it_is_there_by_name_and_says_what_it_is_made_of() -> None:
    with BubblewrapEngine.detect() as engine:
        image = engine.resolve_image(None)
        assert engine.resolve_image("labaudit-demo") == image == engine.resolve_image(image.id)
    assert image.source in ("bundled", "host")
    assert dict(image.packages).get("python3") or image.notes


def test_an_image_that_is_not_there_is_a_clear_error() -> None:
    with BubblewrapEngine.detect() as engine, pytest.raises(EnvironmentLacks) as caught:
        engine.resolve_image("no-such-image")
    assert "docker save" in caught.value.hint


@pytest.mark.acceptance
def test_its_bytecode_and_archive_come_out_the_same_when_made_again(folder: Path) -> None:
    known = ImageCache().bundled()
    facts = read_archive(known.archive)
    tree = folder / "tree"
    unpack(known.archive, facts, tree)
    for cached in list(tree.glob("usr/**/__pycache__")):
        shutil.rmtree(cached)
    assert compile_tree(tree) == ""
    labels = facts.config["config"]["Labels"]  # type: ignore[index,call-overload]
    machine = str(facts.config["architecture"])
    again = write_archive(tree, folder / "again.tar", tag=BUNDLED_TAG, env=ENV, labels=labels, machine=machine)
    assert again == known.image.id


@pytest.mark.acceptance
def test_without_packages_it_is_made_from_this_hosts_interpreter_and_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_packages() -> None:
        raise EnvironmentLacks("there is no apt-get or dpkg-deb")

    monkeypatch.setattr(cache_module, "plan_packages", no_packages)
    monkeypatch.setenv("LABAUDIT_CACHE_DIR", str(folder / "cache"))
    with BubblewrapEngine.detect() as engine:
        image = engine.resolve_image(None)
        result = python(engine, "import ssl, sqlite3, ctypes, json, zlib; print('works')")
    assert (image.source, image.packages) == ("host", ())
    assert "host's interpreter" in image.notes[0]
    assert result.stdout.head == b"works\n", result.stderr.head
