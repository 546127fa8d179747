"""A site is signed as a whole: an edited number, an added or removed page, edited data behind a page are each found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labaudit.attest.keys import PrivateKey
from labaudit.attest.signers import KeySigner
from labaudit.attest.site_statement import SITE_BUNDLE, sign_site
from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import sha256_hex
from labaudit.verify.policy import parse_policy
from labaudit.verify.request import Anchors
from labaudit.verify.verdict import Finding, Report
from tests.make_run import MadeRun
from tests.unit.verify.conftest import codes

PAGES = {
    "index.html": b"<p>success 0.75</p>",
    "trials/one.html": b"<p>failure</p>",
    "data/trials-000.js": b"rows([[1,2]])",
}


def index_of(pages: dict[str, bytes]) -> bytes:
    files = [{"path": path, "size": len(data), "sha256": sha256_hex(data)} for path, data in sorted(pages.items())]
    return canonical_bytes({"schema_version": "site_index_v1", "files": files})


def build(path: Path, key: PrivateKey | None, pages: dict[str, bytes]) -> Path:
    for name, data in pages.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    index = index_of(pages)
    (path / "index.json").write_bytes(index)
    lines = [f"{sha256_hex(data)}  {name}\n" for name, data in pages.items()] + [f"{sha256_hex(index)}  index.json\n"]
    (path / "SHA256SUMS").write_text("".join(lines))
    if key is not None:
        (path / SITE_BUNDLE).write_bytes(sign_site(index, KeySigner(key), [("run-1", "0" * 64)], None))
    return path


@pytest.fixture
def site(made: MadeRun, tmp_path: Path) -> Path:
    return build(tmp_path / "site", made.signing, PAGES)


def test_a_signed_site_verifies_and_says_what_that_is_not(site: Path, check: Callable[..., Report]) -> None:
    report = check(site)
    assert (report.verdict, report.kind, report.claims) == ("verified", "site", {"site": "not_recomputed"})
    assert any("--rebuild" in line for line in report.not_established)


def test_a_number_edited_in_a_page_is_found(site: Path, check: Callable[..., Report]) -> None:
    (site / "index.html").write_bytes(PAGES["index.html"].replace(b"0.75", b"0.95"))
    report = check(site)
    assert report.exit_code == 1
    assert [item[:2] for item in report.findings] == [("site_mismatch", "index.html")]


def test_data_behind_a_page_edited_is_found(site: Path, check: Callable[..., Report]) -> None:
    (site / "data/trials-000.js").write_bytes(b"rows([[1,3]])")
    assert ("site_mismatch", "data/trials-000.js") in {item[:2] for item in check(site).findings}


def test_a_page_added_or_removed_is_found(site: Path, check: Callable[..., Report]) -> None:
    (site / "extra.html").write_bytes(b"hello")
    (site / "trials/one.html").unlink()
    found = {item[:2] for item in check(site).findings}
    assert found == {("extra_file", "extra.html"), ("file_missing", "trials/one.html")}


def test_an_edited_page_with_an_edited_index_breaks_the_signature(site: Path, check: Callable[..., Report]) -> None:
    build(site, None, {**PAGES, "index.html": b"<p>success 0.95</p>"})
    assert codes(check(site)) == {"subject_mismatch"}


def test_an_edited_page_signed_by_a_stranger_is_nobodys(site: Path, check: Callable[..., Report]) -> None:
    build(site, PrivateKey.generate(), {**PAGES, "index.html": b"<p>success 0.95</p>"})
    report = check(site)
    assert (report.exit_code, codes(report)) == (3, {"signer_not_trusted"})


def test_an_unsigned_site_and_no_anchor_are_policy_unmet(
    made: MadeRun, tmp_path: Path, check: Callable[..., Report]
) -> None:
    unsigned = build(tmp_path / "unsigned", None, PAGES)
    assert codes(check(unsigned)) == {"unsigned"}
    assert check(unsigned, integrity_only=True).exit_code == 0
    signed = build(tmp_path / "signed", made.signing, PAGES)
    assert codes(check(signed, anchors=Anchors())) == {"no_trust_anchor"}


def test_links_and_executables_in_a_site_are_found(site: Path, check: Callable[..., Report]) -> None:
    (site / "data/trials-000.js").chmod(0o755)
    (site / "link.html").symlink_to("/etc/hostname")
    assert codes(check(site)) == {"exec_bit", "link_found"}


def test_sums_that_say_something_else_are_found(site: Path, check: Callable[..., Report]) -> None:
    (site / "SHA256SUMS").write_text(f"{'0' * 64}  index.html\n")
    assert codes(check(site)) == {"copy_differs"}


def test_a_rebuild_that_differs_fails(site: Path, check: Callable[..., Report]) -> None:
    report = check(site, rebuild=lambda _: [Finding("site_mismatch", "index.html", "differs")])
    assert (report.exit_code, report.claims) == (1, {"site": "mismatch"})
    assert check(site, rebuild=lambda _: []).claims == {"site": "recomputed"}


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"files": 3}', b"[]", b'{"files":[{"path":"../x","size":1,"sha256":"00"}]}']
)
def test_an_index_that_is_none_is_a_verdict_and_no_traceback(
    site: Path, check: Callable[..., Report], data: bytes
) -> None:
    (site / "index.json").write_bytes(data)
    assert check(site).exit_code in (1, 2)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.replace(b"\n", b"\x0b", 1),
        lambda data: data.replace(b"\n", b"\r\n", 1),
        lambda data: data.replace(b"  ", b" *", 1),
        lambda data: data[:-1],
        lambda data: data + data.splitlines(keepends=True)[0],
        lambda data: data.split(b"\n", 1)[1],
    ],
    ids=["other line end", "crlf", "star", "no last newline", "a line twice", "a line gone"],
)
def test_every_byte_of_the_sums_is_covered(
    site: Path, check: Callable[..., Report], spoil: Callable[[bytes], bytes]
) -> None:
    sums = site / "SHA256SUMS"
    sums.write_bytes(spoil(sums.read_bytes()))
    report = check(site)
    assert (report.verdict, codes(report)) == ("failed", {"copy_differs"})
    assert all(item.path.startswith("SHA256SUMS") for item in report.findings)


def test_sums_that_are_gone_are_missed(site: Path, check: Callable[..., Report]) -> None:
    (site / "SHA256SUMS").unlink()
    assert [item[:2] for item in check(site).findings] == [("file_missing", "SHA256SUMS")]


def signed_index(site: Path, made: MadeRun, change: Callable[[dict[str, Any]], None]) -> None:
    """The index with a change, signed over; the statement names run-1."""
    document = json.loads((site / "index.json").read_bytes())
    change(document)
    index = canonical_bytes(document)
    (site / "index.json").write_bytes(index)
    (site / SITE_BUNDLE).write_bytes(sign_site(index, KeySigner(made.signing), [("run-1", "0" * 64)], None))


def test_a_page_listed_twice_is_found(site: Path, made: MadeRun, check: Callable[..., Report]) -> None:
    def twice(document: dict[str, Any]) -> None:
        document["files"].insert(0, {**document["files"][-1], "sha256": "0" * 64})

    signed_index(site, made, twice)
    assert ("path_duplicate", "trials/one.html") in {item[:2] for item in check(site).findings}


def test_a_row_that_names_no_page_is_malformed(site: Path, made: MadeRun, check: Callable[..., Report]) -> None:
    signed_index(site, made, lambda document: document["files"].append("trials/two.html"))
    assert ("document_malformed", "index.json") in {item[:2] for item in check(site).findings}


def test_a_statement_about_other_runs_than_the_index_shows_is_found(
    site: Path, made: MadeRun, check: Callable[..., Report]
) -> None:
    rows = [{"run_id": "run-2", "manifest_sha256": "0" * 64}]
    signed_index(site, made, lambda document: document.update(runs=rows))
    assert ("statement_mismatch", SITE_BUNDLE) in {item[:2] for item in check(site).findings}
    rows[0]["run_id"] = "run-1"
    signed_index(site, made, lambda document: document.update(runs=rows))
    assert "statement_mismatch" not in codes(check(site))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"recomputed: [site]", "not_recomputed"),
        (b"minimum_grades: {provenance: attested}", "grade_too_low"),
        (b"minimum_grades: {isolation: bounded}", "not_recomputed"),
        (b"minimum_level: cli_events", "not_recomputed"),
        (b"sbom: required", "not_recomputed"),
        (b"max_lost_fraction: 0.1", "not_recomputed"),
        (b"refuse_caveats: [imported_evidence]", "not_recomputed"),
        (b"timestamp: required", "timestamp_absent"),
    ],
)
def test_what_a_policy_demands_and_a_site_or_a_proof_cannot_show_is_unmet(
    site: Path, made: MadeRun, check: Callable[..., Report], text: bytes, code: str
) -> None:
    policy = parse_policy(b"version: 1\n" + text, where="strict.yaml")
    proof = next((made.run.attestations / "proofs").iterdir())
    for target in (site, proof):
        report = check(target, policy=policy)
        assert (report.verdict, codes(report)) == ("policy_unmet", {code})


def test_a_policy_that_demands_a_rebuilt_site_is_met_by_one(site: Path, check: Callable[..., Report]) -> None:
    policy = parse_policy(b"version: 1\nrecomputed: [site]", where="strict.yaml")
    assert check(site, policy=policy, rebuild=lambda root: []).verdict == "verified"
