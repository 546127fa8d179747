"""A published site as `labaudit verify` sees it: signed, logged, rebuilt; and the commands around it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from labaudit.attest.signers import KeySigner
from labaudit.attest.site_statement import SITE_BUNDLE, sign_site
from labaudit.core.canonical import canonical_bytes
from labaudit.core.digest import sha256_hex
from labaudit.site import build_site
from labaudit.site.verify_page import page_digest
from labaudit.store import atomic
from labaudit.store.run_folder import RunFolder
from tests.make_run import MadeRun, RunPlan, make_run


def labaudit(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "labaudit", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def published(made, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    done = labaudit("site", "latest", "--lab-dir", made.lab.path, "--out", folder / "site", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["signer"].startswith("SHA256:")
    return folder / "site"


def test_a_signed_site_verifies_and_its_pages_follow_from_the_run(made, published):
    done = labaudit(
        "verify", published, "--key", made.lab.public_key, "--rebuild", made.run.path, "--json", cwd=published.parent
    )
    report = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout
    assert report["claims"]["site"] == "recomputed"
    assert (published / "log" / "checkpoint").is_file()


def test_a_number_edited_on_a_page_is_found_by_digest_and_by_rebuild(made, published, tmp_path):
    forged = tmp_path / "site"
    shutil.copytree(published, forged)
    page = forged / "index.html"
    page.write_bytes(page.read_bytes().replace(b"counted<dd>5<", b"counted<dd>6<"))
    assert page.read_bytes() != (published / "index.html").read_bytes()
    done = labaudit("verify", forged, "--key", made.lab.public_key, "--rebuild", made.run.path, "--json", cwd=tmp_path)
    codes = {(item["code"], item["path"]) for item in json.loads(done.stdout)["findings"]}
    assert done.returncode == 1
    assert ("site_mismatch", "index.html") in codes


def test_a_consistently_forged_site_is_found_by_rebuild_alone(made, tmp_path):
    from labaudit.site.rebuild import compare_with_run

    build_site([made.run.path], tmp_path / "site")
    page = tmp_path / "site" / "grades.html"
    page.write_bytes(page.read_bytes().replace(b"bounded", b"sealed"))
    (tmp_path / "site" / "extra.html").write_text("added")
    (tmp_path / "site" / "sbom.html").unlink()
    found = dict(compare_with_run(tmp_path / "site", RunFolder(made.run.path)))
    assert set(found) == {"grades.html", "extra.html", "sbom.html"}


def signed_over(site: Path, made: MadeRun, path: str, old: bytes, new: bytes) -> None:
    """What a publisher could do to its own site: edit a file, then list, sum and sign everything anew."""
    data = (site / path).read_bytes()
    assert old in data
    (site / path).write_bytes(data.replace(old, new))
    index = json.loads((site / "index.json").read_bytes())
    for item in index["files"]:
        if item["path"] == path:
            item.update(size=(site / path).stat().st_size, sha256=sha256_hex((site / path).read_bytes()))
    listed = canonical_bytes(index)
    (site / "index.json").write_bytes(listed)
    rows = [(item["path"], item["sha256"]) for item in index["files"]] + [("index.json", sha256_hex(listed))]
    order = [line.split("  ", 1)[1] for line in (site / "SHA256SUMS").read_text().splitlines()]
    sums = dict(rows)
    (site / "SHA256SUMS").write_text("".join(f"{sums[name]}  {name}\n" for name in order))
    manifest = sha256_hex(made.run.manifest.read_bytes())
    (site / SITE_BUNDLE).write_bytes(sign_site(listed, KeySigner(made.signing), [(made.run.run_id, manifest)], None))


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [("grades.html", b"bounded", b"sealed"), ("data/trials-000.json", b'"failure"', b'"success"')],
)
def test_what_a_publisher_edited_and_signed_over_is_found_by_rebuilding(made, tmp_path, path, old, new):
    built = build_site([made.run.path], tmp_path / "site")
    signed_over(built.path, made, path, old, new)
    command = ("verify", built.path, "--key", made.lab.public_key, "--json")
    without = json.loads(labaudit(*command, cwd=tmp_path).stdout)
    assert (without["verdict"], without["claims"]) == ("verified", {"site": "not_recomputed"})
    done = labaudit(*command, "--rebuild", made.run.path, cwd=tmp_path)
    assert done.returncode == 1
    found = {(item["code"], item["path"]) for item in json.loads(done.stdout)["findings"]}
    assert found == {("site_mismatch", name) for name in (path, "index.json", "SHA256SUMS")}


def test_the_page_digest_fits_every_site_of_this_version(published, hostile):
    lines = [line.split("  ") for line in page_digest().splitlines()]
    assert lines[0][1] == "verify.html"
    for folder in (published, hostile.path):
        index = {item["path"]: item["sha256"] for item in json.loads((folder / "index.json").read_bytes())["files"]}
        assert all(index[path] == digest for digest, path in lines)


def test_sha256sums_is_in_the_form_that_sha256sum_checks(published):
    done = subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=published, check=False)
    assert done.returncode == 0


def test_a_run_that_does_not_hold_ends_with_exit_code_1_and_a_next_step(made, tmp_path):
    broken = tmp_path / "run"
    shutil.copytree(made.run.path, broken)
    trial = next(path for path in (broken / "trials").iterdir() if (path / "stdout.log").is_file())
    (trial / "stdout.log").write_bytes(b"changed")
    done = labaudit("site", broken, "--out", tmp_path / "site", "--no-sign", cwd=tmp_path)
    assert done.returncode == 1
    assert "--publish-failed" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "site").exists()


def test_a_folder_that_is_no_run_ends_with_exit_code_2(tmp_path):
    done = labaudit("site", str(tmp_path) + "/", "--out", tmp_path / "site", cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_metadata_parses_and_names_the_run(made, published):
    crate = json.loads((published / "ro-crate-metadata.json").read_bytes())
    root = next(item for item in crate["@graph"] if item["@id"] == "./")
    assert root["identifier"] == made.run.run_id
    listed = {part["@id"] for part in root["hasPart"]}
    assert all((published / path).is_file() for path in listed)
    dataset = json.loads((published / "dataset.jsonld").read_bytes())
    assert dataset["@type"] == "Dataset"
    page = (published / "index.html").read_text("utf-8")
    start = page.index('<script type="application/ld+json">') + len('<script type="application/ld+json">')
    assert json.loads(page[start : page.index("</script>", start)]) == dataset


def test_a_two_run_lab_without_keys_says_that_the_site_is_not_signed(made, tmp_path):
    done = labaudit("site", str(made.run.path), "--out", tmp_path / "site", cwd=tmp_path)
    assert done.returncode == 0
    assert "not signed" in done.stderr
    assert not (tmp_path / "site" / "site.sigstore.json").exists()


def test_relatives_that_the_lab_knows_are_published_beside_a_run(tmp_path):
    parent = make_run(tmp_path, RunPlan(tasks=1, lost=frozenset(), failures=frozenset()))
    named = {"run_id": parent.run.run_id, "trial_id": "t", "manifest_digest": "sha256:" + "0" * 64}

    def add(path: Path) -> None:
        atomic.write_json(path / "lineage.json", {"kind": "replay", "parent": named, "selector": None, "set": {}})

    child = make_run(tmp_path, RunPlan(tasks=2, lost=frozenset()), before_seal=add)
    gone = {"kind": "fork", "parent": named, "child": {"run_id": "run-gone"}, "selector": "step:1", "set": {"a": 1}}
    known = {"kind": "replay", "parent": named, "child": {"run_id": child.run.run_id}, "selector": None, "set": {}}
    for line in (gone, known):
        atomic.append_line(parent.lab.lineage, line)
    for start, other in ((parent, child), (child, parent)):
        out = tmp_path / f"site-{start.run.run_id}"
        command = ("site", start.run.run_id, "--relatives", "--no-sign", "--lab-dir", parent.lab.path, "--out", out)
        done = labaudit(*command, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["runs"] == [start.run.run_id, other.run.run_id]
