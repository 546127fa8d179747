"""Archives: the same tree has the same id, and a hostile archive lays nothing outside its tree."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from labaudit.engines.images.archive import read_archive, unpack, write_archive
from labaudit.engines.images.cache import ImageCache
from labaudit.errors import BadInput


def sample_tree(folder: Path) -> Path:
    tree = folder / "tree"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "sh").write_text("#!")
    (tree / "bin" / "sh").chmod(0o755)
    (tree / "lib").symlink_to("bin")
    (tree / "data").write_bytes(b"x" * 5000)
    return tree


def archived(tree: Path, target: Path) -> str:
    return write_archive(tree, target, tag="t:latest", env={"A": "1"}, labels={}, machine="amd64")


def docker_save(path: Path, *layers: bytes, lie: bool = False) -> Path:
    """A docker-save archive with the given layers; `lie` gives the config another layer's digest."""
    ids = [f"sha256:{hashlib.sha256(b'other' if lie else layer).hexdigest()}" for layer in layers]
    config = json.dumps({"rootfs": {"type": "layers", "diff_ids": ids}, "config": {"Env": ["A=b=c"]}}).encode()
    names = [f"{number}/layer.tar" for number in range(len(layers))]
    manifest = json.dumps([{"Config": "c.json", "Layers": names, "RepoTags": ["made:latest"]}]).encode()
    with tarfile.open(path, "w") as archive:
        for name, data in (("manifest.json", manifest), ("c.json", config), *zip(names, layers, strict=True)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def layer(*entries: tuple[str, str, str]) -> bytes:
    """(name, kind, content or target) as a layer."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as made:
        for name, kind, content in entries:
            info = tarfile.TarInfo(name)
            info.mode = 0o4755
            if kind == "file":
                info.size = len(content)
                made.addfile(info, io.BytesIO(content.encode()))
                continue
            kinds = {"dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "dev": tarfile.CHRTYPE}
            info.type, info.linkname = kinds[kind], content
            made.addfile(info)
    return buffer.getvalue()


def test_the_same_tree_has_the_same_id_whenever_and_by_whomever_it_was_made(tmp_path: Path) -> None:
    first, second = sample_tree(tmp_path / "a"), sample_tree(tmp_path / "b")
    for path in (second / "data", second / "bin"):
        os.utime(path, (1, 1))
    assert archived(first, tmp_path / "1.tar") == archived(second, tmp_path / "2.tar")
    assert (tmp_path / "1.tar").read_bytes() == (tmp_path / "2.tar").read_bytes()
    (second / "data").write_bytes(b"y" * 5000)
    assert archived(second, tmp_path / "3.tar") != archived(first, tmp_path / "4.tar")


def test_an_archive_comes_back_as_its_tree(tmp_path: Path) -> None:
    image_id = archived(sample_tree(tmp_path), tmp_path / "a.tar")
    image = read_archive(tmp_path / "a.tar")
    assert (image.id, image.env) == (image_id, {"A": "1"})
    unpack(tmp_path / "a.tar", image, tmp_path / "back")
    assert (tmp_path / "back" / "lib").readlink() == Path("bin")
    assert (tmp_path / "back" / "bin" / "sh").stat().st_mode & 0o777 == 0o755


def test_later_layers_hide_and_replace_what_is_below(tmp_path: Path) -> None:
    below = layer(("etc", "dir", ""), ("etc/a", "file", "1"), ("etc/b", "file", "1"), ("old/x", "file", ""))
    whiteouts = (("etc/.wh.a", "file", ""), ("old/.wh..wh..opq", "file", ""))
    above = layer(*whiteouts, ("etc/b", "file", "2"), ("old/y", "file", ""))
    path = docker_save(tmp_path / "i.tar", below, above)
    unpack(path, read_archive(path), tmp_path / "tree")
    assert not (tmp_path / "tree" / "etc" / "a").exists()
    assert (tmp_path / "tree" / "etc" / "b").read_text() == "2"
    assert [child.name for child in (tmp_path / "tree" / "old").iterdir()] == ["y"]


@pytest.mark.parametrize(
    "entries",
    [
        [("../escape", "file", "x")],
        [("a/../../escape", "file", "x")],
        [("hard", "hard", "../../escape")],
    ],
)
def test_entries_that_leave_the_image_are_refused(tmp_path: Path, entries: list[tuple[str, str, str]]) -> None:
    path = docker_save(tmp_path / "i.tar", layer(*entries))
    with pytest.raises(BadInput, match="leaves the image"):
        unpack(path, read_archive(path), tmp_path / "deep" / "tree")
    assert not (tmp_path / "deep" / "escape").exists()


def test_a_link_out_of_the_image_is_followed_as_chroot_would(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    entries = [("evil", "link", str(outside)), ("evil/file", "file", "x")]
    entries += [("up", "link", "../../../.."), ("up/f", "file", "y")]
    path = docker_save(tmp_path / "i.tar", layer(*entries))
    unpack(path, read_archive(path), tmp_path / "tree")
    assert list(outside.iterdir()) == []
    assert (tmp_path / "tree" / str(outside).lstrip("/") / "file").read_text() == "x"
    assert (tmp_path / "tree" / "f").read_text() == "y"


def test_devices_and_set_id_bits_do_not_come_along(tmp_path: Path) -> None:
    path = docker_save(tmp_path / "i.tar", layer(("null", "dev", ""), ("tool", "file", "x")))
    unpack(path, read_archive(path), tmp_path / "tree")
    assert not (tmp_path / "tree" / "null").exists()
    assert (tmp_path / "tree" / "tool").stat().st_mode & 0o7000 == 0


def test_a_layer_that_is_not_the_one_its_config_names_is_refused(tmp_path: Path) -> None:
    path = docker_save(tmp_path / "i.tar", layer(("a", "file", "x")), lie=True)
    with pytest.raises(BadInput, match="digest"):
        unpack(path, read_archive(path), tmp_path / "tree")


@pytest.mark.parametrize("content", [b"", b"not a tar", b"{}" * 600])
def test_what_is_no_archive_is_a_clear_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "i.tar").write_bytes(content)
    with pytest.raises(BadInput, match="docker-save"):
        read_archive(tmp_path / "i.tar")


def test_the_cache_takes_an_archive_once_and_finds_it_by_id_prefix_and_name(tmp_path: Path) -> None:
    path = docker_save(tmp_path / "i.tar", layer(("a", "file", "x")))
    cache = ImageCache(tmp_path / "cache")
    first = cache.from_archive(path)
    assert cache.from_archive(path).folder == first.folder
    hexpart = first.image.id.removeprefix("sha256:")
    for reference in (first.image.id, hexpart, hexpart[:12], "made:latest", "made"):
        found = cache.find(reference)
        assert found is not None, reference
        assert found.image == first.image
    assert cache.find(hexpart[:8]) is None
    assert (cache.tree(first) / "a").read_text() == "x"
    assert first.image.env == {"A": "b=c"}
    assert [item.name for item in (tmp_path / "cache").glob(".building-*")] == []
