"""Who kept an old checkpoint notices when history is cut or rewritten: for a run, a proof and a publication log."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from labaudit.attest.checkpoint import Checkpoint, parse_checkpoint, sign_checkpoint
from labaudit.attest.derived_files import sum_line
from labaudit.attest.keys import PrivateKey
from labaudit.attest.log_key import LogKey
from labaudit.attest.publication_log import (
    append,
    append_run,
    publication_verifier,
    read_entries,
    render_log,
    sign_head,
)
from labaudit.attest.signers import KeySigner
from labaudit.attest.site_statement import SITE_BUNDLE, sign_site
from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import sha256_hex
from labaudit.store.lab_folder import LabFolder
from labaudit.verify.verdict import Report
from tests.make_run import MadeRun
from tests.unit.verify.conftest import codes


@pytest.fixture
def head(made: MadeRun) -> Checkpoint:
    return parse_checkpoint(made.run.checkpoint.read_bytes(), where="")


def test_the_same_checkpoint_still_holds(made: MadeRun, head: Checkpoint, check: Callable[..., Report]) -> None:
    assert check(made.run.path, seen=head.render()).verdict == "verified"


def test_two_heads_of_one_size_are_a_fork(made: MadeRun, head: Checkpoint, check: Callable[..., Report]) -> None:
    seen = sign_checkpoint(head.origin, head.size, b"\x01" * 32, made.log_key).render()
    report = check(made.run.path, seen=seen)
    assert (report.exit_code, codes(report)) == (1, {"seen_fork"})


def test_a_shorter_tree_than_seen_is_a_rollback(
    made: MadeRun, head: Checkpoint, completed: list[str], check: Callable[..., Report]
) -> None:
    seen = sign_checkpoint(head.origin, head.size + 1, head.root, made.log_key).render()
    for target in (made.run.path, made.run.proof(completed[0])):
        report = check(target, seen=seen)
        assert (report.exit_code, codes(report)) == (1, {"seen_rollback"})


def test_a_sealed_run_does_not_grow(made: MadeRun, head: Checkpoint, check: Callable[..., Report]) -> None:
    seen = sign_checkpoint(head.origin, head.size - 1, head.root, made.log_key).render()
    assert codes(check(made.run.path, seen=seen)) == {"seen_fork"}


def test_a_checkpoint_of_another_log_says_nothing_here(made: MadeRun, check: Callable[..., Report]) -> None:
    seen = sign_checkpoint("elsewhere.example/log", 6, b"\x01" * 32, made.log_key).render()
    assert codes(check(made.run.path, seen=seen)) == {"seen_other_log"}


def test_a_checkpoint_that_the_log_key_did_not_sign_accuses_nobody(
    made: MadeRun, head: Checkpoint, check: Callable[..., Report]
) -> None:
    seen = sign_checkpoint(head.origin, head.size + 5, head.root, LogKey.generate()).render()
    assert codes(check(made.run.path, seen=seen)) == {"seen_other_log"}


def test_what_is_no_checkpoint_is_malformed(made: MadeRun, check: Callable[..., Report]) -> None:
    report = check(made.run.path, seen=b"hello\n")
    assert (report.exit_code, codes(report)) == (2, {"seen_malformed"})


# --- the publication log ------------------------------------------------------------------------------------------


class Site:
    """A small site with a publication log, signed."""

    def __init__(self, path: Path, signing: PrivateKey, log_key: LogKey) -> None:
        self.path, self.signing, self.log_key = path, signing, log_key
        path.mkdir()
        self.pages = {"index.html": b"<p>1 of 2</p>"}

    def publish(self, *entries: bytes) -> bytes:
        """Adds entries to the log, signs the site, and gives the log's head."""
        for entry in entries:
            append(self.path / "log", entry, self.log_key)
        self.sign(str(publication_verifier(self.log_key)))
        return (self.path / "log" / "checkpoint").read_bytes()

    def sign(self, log_key: str | None) -> None:
        """Writes the pages, the index over them and its signature."""
        for name, data in self.pages.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_bytes(data)
        hashes = {name: sha256_hex(data) for name, data in self.pages.items()}
        files = [{"path": name, "size": len(self.pages[name]), "sha256": hashes[name]} for name in hashes]
        index = canonical_bytes({"schema_version": "site_index_v1", "files": files})
        (self.path / "index.json").write_bytes(index)
        sums = [sum_line(digest, name) for name, digest in {**hashes, "index.json": sha256_hex(index)}.items()]
        (self.path / "SHA256SUMS").write_bytes(b"".join(sums))
        (self.path / SITE_BUNDLE).write_bytes(sign_site(index, KeySigner(self.signing), [], log_key))


@pytest.fixture
def site(made: MadeRun, tmp_path: Path) -> Site:
    return Site(tmp_path / "site", made.signing, made.log_key)


def test_a_log_that_grew_holds_against_every_head_it_ever_had(site: Site, check: Callable[..., Report]) -> None:
    heads = [site.publish(f"entry {number}".encode()) for number in range(12)]
    for seen in heads:
        assert check(site.path, seen=seen).verdict == "verified"


def test_a_log_with_more_than_one_tile_holds(site: Site, check: Callable[..., Report]) -> None:
    entries = [f"entry {number}".encode() for number in range(600)]
    for path, data in render_log(entries).items():
        (site.path / "log" / path).parent.mkdir(parents=True, exist_ok=True)
        (site.path / "log" / path).write_bytes(data)
    seen = site.publish(b"entry 600")
    assert (site.path / "log/tile/1/000.p/2").is_file()
    assert read_entries(site.path / "log") == [*entries, b"entry 600"]
    for size in (1, 255, 256, 257, 512, 600):
        old = sign_head(entries[:size], site.log_key).render()
        assert check(site.path, seen=old).verdict == "verified", size
    assert check(site.path, seen=seen).verdict == "verified"


def test_a_log_that_was_cut_is_a_rollback(site: Site, check: Callable[..., Report], made: MadeRun) -> None:
    seen = site.publish(b"one", b"two", b"three")
    again = Site(site.path.parent / "again", made.signing, made.log_key)
    again.publish(b"one", b"two")
    report = check(again.path, seen=seen)
    assert (report.exit_code, codes(report)) == (1, {"seen_rollback"})


def test_a_log_that_was_rewritten_is_a_fork(site: Site, check: Callable[..., Report], made: MadeRun) -> None:
    seen = site.publish(b"one", b"two")
    for name, entries in (("same", (b"one", b"2")), ("longer", (b"one", b"2", b"three"))):
        again = Site(site.path.parent / name, made.signing, made.log_key)
        again.publish(*entries)
        assert codes(check(again.path, seen=seen)) == {"seen_fork"}


def test_a_log_that_is_gone_is_a_rollback(site: Site, check: Callable[..., Report], made: MadeRun) -> None:
    seen = site.publish(b"one")
    bare = Site(site.path.parent / "bare", made.signing, made.log_key)
    (bare.path / "log").mkdir()
    (bare.path / "log" / "checkpoint").write_bytes(seen)
    bare.publish()
    (bare.path / "log" / "checkpoint").unlink()
    assert codes(check(bare.path, seen=seen)) == {"seen_rollback"}


def test_every_file_of_the_log_is_covered(site: Site, check: Callable[..., Report]) -> None:
    site.publish(b"one", b"two", b"three")
    for path in sorted((site.path / "log").rglob("*")):
        if path.is_file():
            before = path.read_bytes()
            path.write_bytes(bytes([before[0] ^ 1]) + before[1:])
            assert check(site.path).exit_code in (1, 2), path
            path.write_bytes(before)
    (site.path / "log" / "tile" / "0" / "stray").write_bytes(b"x")
    assert codes(check(site.path)) == {"extra_file"}


def test_a_log_of_another_lab_is_found(site: Site, check: Callable[..., Report]) -> None:
    site.publish(b"one")
    head = sign_head([b"one"], LogKey.generate())
    (site.path / "log" / "checkpoint").write_bytes(head.render())
    assert codes(check(site.path)) == {"checkpoint_origin"}


def test_publishing_a_run_twice_adds_nothing(made: MadeRun, tmp_path: Path) -> None:
    lab = LabFolder(tmp_path)
    first = append_run(lab, made.run, made.log_key)
    again = append_run(lab, made.run, made.log_key)
    assert (first, first.size) == (again, 1)


def test_a_log_that_the_statement_names_and_nobody_sees_is_found(site: Site, check: Callable[..., Report]) -> None:
    site.publish(b"entry")
    shutil.rmtree(site.path / "log")
    assert [item[:2] for item in check(site.path).findings] == [("checkpoint_missing", "log/checkpoint")]


@pytest.mark.parametrize("name", ["\u00b2", "000.p/\u00b2", "9" * 30, "000.p/0", "x/y"])
def test_a_file_among_the_entries_that_is_no_tile_of_this_log_is_extra(
    site: Site, check: Callable[..., Report], name: str
) -> None:
    site.publish(b"entry")
    path = site.path / "log/tile/entries" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    report = check(site.path)
    assert report.verdict == "failed"
    assert {item.path for item in report.findings} >= {f"log/tile/entries/{name}"}


def test_a_published_checkpoint_that_is_not_in_the_log_is_found(site: Site, check: Callable[..., Report]) -> None:
    site.pages["files/attestations/checkpoint"] = b"a checkpoint"
    site.publish(b"another entry")
    found = [item[:2] for item in check(site.path).findings]
    assert found == [("log_mismatch", "files/attestations/checkpoint")]
    site.publish(b"a checkpoint")
    assert check(site.path).verdict == "verified"


def test_a_log_beside_a_site_whose_statement_names_none_is_extra(site: Site, check: Callable[..., Report]) -> None:
    site.publish(b"entry")
    site.sign(None)
    assert [item[:2] for item in check(site.path).findings] == [("extra_file", "log/checkpoint")]


def test_a_log_of_endless_entries_is_refused_in_bounded_memory(
    site: Site, check: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    site.publish(b"entry" * 100)
    monkeypatch.setattr("labaudit.verify.published_log.MAX_LOG", 100)
    assert codes(check(site.path)) == {"log_malformed"}
