"""Bills of materials: packages read from the image itself, documents that the formats' own libraries accept."""

from __future__ import annotations

import io
import json
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from labaudit.attest.sbom import Component, SbomReport, SbomSubject, describe_harness, describe_image, write_documents
from labaudit.attest.sbom.image_packages import read_image
from labaudit.attest.sbom.lockfiles import parse_lockfile
from labaudit.errors import BadInput, Contradiction

CREATED = datetime(2026, 11, 18, 9, 30, tzinfo=UTC)
DIGEST = "sha256:" + "5a" * 32
DPKG = b"""Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u4
Description: GNU C Library
 more text

Package: gone
Status: deinstall ok config-files
Version: 1.0
Architecture: amd64

Package: python3
Status: install ok installed
Architecture: amd64
Version: 3.11.2-1
"""
APK = b"P:musl\nV:1.2.4-r2\nA:x86_64\nL:MIT\n\nP:busybox\nV:1.36.1-r5\nA:x86_64\n"
FILES = {
    "var/lib/dpkg/status": DPKG,
    "etc/os-release": b'ID=debian\nVERSION_ID="12"\n',
    "usr/lib/python3/dist-packages/requests-2.31.0.dist-info/METADATA": b"Name: requests\nVersion: 2.31.0\n\nbody",
}


def tar_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def saved(*layers: dict[str, bytes]) -> bytes:
    """What `docker save` writes, layer by layer."""
    parts = {f"layer{number}.tar": tar_of(layer) for number, layer in enumerate(layers)}
    manifest = json.dumps([{"Config": "config.json", "RepoTags": [], "Layers": list(parts)}]).encode()
    return tar_of({"manifest.json": manifest, "config.json": b"{}", **parts})


def names(source: Path) -> set[tuple[str, str, str]]:
    return {(item.kind, item.name, item.version) for item in read_image(source).components}


EXPECTED = {("deb", "libc6", "2.36-9+deb12u4"), ("deb", "python3", "3.11.2-1"), ("pypi", "requests", "2.31.0")}


def test_a_folder_a_tar_and_a_saved_image_give_the_same_packages(tmp_path: Path) -> None:
    for name, data in FILES.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_bytes(data)
    (tmp_path / "root.tar").write_bytes(tar_of(FILES))
    (tmp_path / "saved.tar").write_bytes(saved(FILES))
    for source in ("tree", "root.tar", "saved.tar"):
        assert names(tmp_path / source) == EXPECTED


def test_an_upper_layer_replaces_and_removes(tmp_path: Path) -> None:
    upper = {
        "var/lib/dpkg/status": DPKG.replace(b"3.11.2-1", b"3.11.9-1"),
        "usr/lib/python3/dist-packages/.wh.requests-2.31.0.dist-info": b"",
    }
    (tmp_path / "saved.tar").write_bytes(saved(FILES, upper))
    assert names(tmp_path / "saved.tar") == {("deb", "libc6", "2.36-9+deb12u4"), ("deb", "python3", "3.11.9-1")}


def test_alpine_packages_are_read(tmp_path: Path) -> None:
    (tmp_path / "root.tar").write_bytes(tar_of({"lib/apk/db/installed": APK}))
    assert names(tmp_path / "root.tar") == {("apk", "musl", "1.2.4-r2"), ("apk", "busybox", "1.36.1-r5")}


def test_a_link_in_an_image_does_not_lead_to_the_host(tmp_path: Path) -> None:
    tree = tmp_path / "tree" / "var/lib/dpkg"
    tree.mkdir(parents=True)
    (tmp_path / "host_status").write_bytes(DPKG)
    (tree / "status").symlink_to(tmp_path / "host_status")
    assert names(tmp_path / "tree") == set()


def test_an_unknown_package_manager_is_said(tmp_path: Path) -> None:
    (tmp_path / "root.tar").write_bytes(tar_of({"var/lib/rpm/rpmdb.sqlite": b"SQLite"}))
    report = SbomReport()
    describe_image(report, tmp_path / "out", "image", DIGEST, tmp_path / "root.tar", created=CREATED)
    assert report.written == []
    assert any("rpm" in item["reason"] for item in report.missing)


def test_a_missing_bill_stops_a_run_that_requires_one(tmp_path: Path) -> None:
    report = SbomReport()
    describe_image(report, tmp_path, "image", None, None, created=CREATED)
    describe_harness(report, tmp_path, "harness", DIGEST, None, created=CREATED)
    assert [item["subject"] for item in report.missing] == ["image", "harness"]
    with pytest.raises(Contradiction, match="required"):
        report.insist()


def test_what_is_no_image_is_recorded_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "junk").write_bytes(b"not a tar")
    report = SbomReport()
    describe_image(report, tmp_path, "image", DIGEST, tmp_path / "junk", created=CREATED)
    assert "no tar archive" in report.missing[0]["reason"]


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    components = [
        Component("libc6", "2.36-9", "deb", architecture="amd64", namespace="debian", licence="LGPL-2.1"),
        Component("left-pad", "1.3.0", "npm", namespace="@scope"),
        Component("unpinned", "", "pypi"),
        Component("serde", "1.0.1", "cargo", sha256="ab" * 32),
        Component("na me", "1~2+3", "deb"),
    ]
    write_documents(tmp_path, "image", SbomSubject("image", "labaudit-demo", DIGEST), components, created=CREATED)
    return tmp_path


def test_the_cyclonedx_librarys_validator_accepts_the_document(documents: Path) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    text = (documents / "image.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    value = json.loads(text)
    assert value["specVersion"] == "1.6"
    assert value["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": "5a" * 32}]
    assert len(value["components"]) == 5


def test_the_spdx_tools_parser_and_validator_accept_the_document(documents: Path) -> None:
    from spdx_tools.spdx.parser.parse_anything import parse_file
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

    document = parse_file(str(documents / "image.spdx.json"))
    assert validate_full_spdx_document(document) == []
    assert document.creation_info.spdx_version == "SPDX-2.3"
    assert len(document.packages) == 6


def test_the_same_packages_give_the_same_bytes(documents: Path, tmp_path: Path) -> None:
    components = [Component("b", "2", "deb"), Component("a", "1", "deb")]
    for folder, order in (("x", components), ("y", components[::-1])):
        write_documents(tmp_path / folder, "image", SbomSubject("image", "i", DIGEST), order, created=CREATED)
    for name in ("image.cdx.json", "image.spdx.json"):
        assert (tmp_path / "x" / name).read_bytes() == (tmp_path / "y" / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "requirements.txt",
            "# c\nRequests==2.31.0 \\\n  --hash=sha256:aa\n-e .\nflask>=2\n",
            {("requests", "2.31.0"), ("flask", "")},
        ),
        ("uv.lock", '[[package]]\nname = "a_b"\nversion = "1"\n', {("a-b", "1")}),
        ("Cargo.lock", '[[package]]\nname = "serde"\nversion = "1.0"\n', {("serde", "1.0")}),
        ("package-lock.json", '{"packages": {"": {}, "node_modules/@s/x": {"version": "3"}}}', {("x", "3")}),
        ("go.sum", "example.com/m v1.2.3 h1:aa=\nexample.com/m v1.2.3/go.mod h1:bb=\n", {("m", "v1.2.3")}),
    ],
)
def test_lockfiles_are_read_by_their_kind(name: str, text: str, expected: set[tuple[str, str]]) -> None:
    assert {(item.name, item.version) for item in parse_lockfile(name, text.encode(), where=name)} == expected


@pytest.mark.parametrize(
    ("name", "data"), [("Pipfile", b""), ("uv.lock", b"= ="), ("package-lock.json", b"[1]"), ("go.sum", b"x")]
)
def test_a_lockfile_that_is_none_is_bad_input(name: str, data: bytes) -> None:
    with pytest.raises(BadInput):
        parse_lockfile(name, data, where=name)
