"""keys, verify, bundle, attest and sbom as a user types them: exit codes, JSON on stdout, talk on stderr."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest

from labaudit.attest.bundles import parse_bundle
from labaudit.attest.keys import PrivateKey
from labaudit.cli import main
from tests.make_run import MadeRun, RunPlan, make_run


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def labaudit(*arguments: object, cwd: Path, **environment: str) -> Done:
    """The console script in this process: the same `main`, the same exit codes, without a new interpreter each time."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["labaudit", *(str(argument) for argument in arguments)]
    code = 0
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        chdir(cwd),
        mock.patch.object(sys, "argv", argv),
        mock.patch.dict(os.environ, environment),
    ):
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Done(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> MadeRun:
    """A lab in its own folder; commands run beside it."""
    return make_run(tmp_path_factory.mktemp("lab"), RunPlan(analysis=False))


@pytest.fixture
def home(lab: MadeRun) -> Path:
    return lab.lab.path.parent


def test_without_an_anchor_it_ends_with_3_and_says_what_was_established(home: Path) -> None:
    done = labaudit("verify", "latest", cwd=home)
    assert done.returncode == 3
    assert "no_trust_anchor" in done.stdout
    assert "established:\n  + every byte of the run is as it was sealed" in done.stdout
    assert "which proves nothing" in done.stdout


def test_a_key_a_prefix_and_json(home: Path, lab: MadeRun) -> None:
    done = labaudit("verify", lab.run.run_id[:14], "--key", ".lab/keys/labaudit.pub", "--json", cwd=home)
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"], report["kind"]) == (0, "verified", "run")
    assert [step["step"] for step in report["steps"]] == list(range(len(report["steps"])))
    assert report["signers"] == [lab.signing.public.keyid]


def test_a_trusted_key_needs_no_option(home: Path, tmp_path: Path, lab: MadeRun) -> None:
    trusting = labaudit("keys", "trust", home / ".lab/keys/labaudit.pub", "--name", "publisher", cwd=tmp_path)
    assert lab.signing.public.keyid in trusting.stdout
    assert labaudit("verify", lab.run.path, cwd=tmp_path).returncode == 0
    assert labaudit("verify", lab.run.path, cwd=home, LABAUDIT_DIR=str(tmp_path / ".lab")).returncode == 0
    assert labaudit("verify", lab.run.path, "--lab-dir", tmp_path / ".lab", cwd=home).returncode == 0


def test_a_trust_folder_that_came_with_the_target_proves_nothing(lab: MadeRun, tmp_path: Path) -> None:
    target = tmp_path / "target"
    shutil.copytree(lab.run.path, target)
    (target / ".lab" / "trust").mkdir(parents=True)
    shutil.copy(lab.lab.public_key, target / ".lab" / "trust" / "publisher.pub")
    done = labaudit("verify", ".", cwd=target)
    assert "no_trust_anchor" in done.stdout
    assert done.returncode == 1  # and the folder itself is an extra one


def test_integrity_only_ends_with_0_and_says_that_no_signer_was_established(home: Path) -> None:
    done = labaudit("verify", "latest", "--integrity-only", cwd=home)
    assert done.returncode == 0
    assert "no signer that you trust was found" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify"],
        ["verify", "nothing-here"],
        ["verify", "latest", "--key", "none.pub"],
        ["verify", "latest", "--identity", "a@b.test"],
        ["verify", "latest", "--policy", "none.yaml"],
        ["verify", "latest", "--seen", "none"],
        ["verify", "latest", "--unknown"],
        ["bundle", "nothing-here"],
        ["attest", "nothing-here"],
        ["keys", "show", "nobody"],
        ["keys", "trust", "none.pub"],
        ["keys", "new", "--name", "../x"],
    ],
)
def test_a_mistake_ends_with_2_and_no_traceback(home: Path, arguments: list[str]) -> None:
    done = labaudit(*arguments, cwd=home)
    assert done.returncode == 2
    assert done.stderr
    assert "Traceback" not in done.stderr


def test_a_spoiled_run_ends_with_1_and_names_file_and_next_step(lab: MadeRun, tmp_path: Path) -> None:
    target = tmp_path / "run"
    shutil.copytree(lab.run.path, target)
    (target / "grades.json").write_bytes(b"{}")
    done = labaudit("verify", target, "--key", lab.lab.public_key, cwd=tmp_path)
    assert done.returncode == 1
    assert "size_mismatch  grades.json" in done.stdout
    assert "next: the file was changed after sealing" in done.stdout


def test_a_bundle_is_made_once_and_verifies(home: Path, tmp_path: Path, lab: MadeRun) -> None:
    made = labaudit("bundle", "latest", "--out", tmp_path / "run.zip", "--json", cwd=home)
    assert json.loads(made.stdout)["files"] > 100
    assert labaudit("bundle", "latest", "--out", tmp_path / "run.zip", cwd=home).returncode == 2
    done = labaudit("verify", tmp_path / "run.zip", "--key", lab.lab.public_key, cwd=tmp_path)
    assert done.returncode == 0


def test_the_verdict_as_a_signed_summary(home: Path, tmp_path: Path, lab: MadeRun) -> None:
    out = tmp_path / "vsa.json"
    done = labaudit(
        "verify", "latest", "--key", lab.lab.public_key, "--emit-vsa", out, "--lab-dir", home / ".lab", cwd=home
    )
    assert done.returncode == 0, done.stderr
    bundle = parse_bundle(out.read_bytes(), where="vsa")
    assert lab.signing.public.verifies(bundle.envelope.signature, bundle.envelope.signed_bytes)
    statement = json.loads(bundle.envelope.payload)
    assert statement["predicateType"] == "https://slsa.dev/verification_summary/v1"
    assert statement["subject"][0]["name"] == "manifest.json"
    assert statement["predicate"]["verificationResult"] == "PASSED"
    labaudit("verify", "latest", "--emit-vsa", out, cwd=home)
    failed = json.loads(parse_bundle(out.read_bytes(), where="vsa").envelope.payload)["predicate"]
    assert (failed["verificationResult"], failed["labaudit"]["reasons"]) == ("FAILED", ["no_trust_anchor"])
    assert failed["verifiedLevels"] == []


def test_attest_shows_and_signs_once(tmp_path: Path, home: Path) -> None:
    shown = labaudit("attest", "latest", "--show", "result", "--json", cwd=home)
    assert json.loads(shown.stdout)["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    unsigned = make_run(tmp_path, RunPlan(analysis=False), sign=False)
    assert labaudit("verify", "latest", cwd=tmp_path).returncode == 3
    signed = labaudit("attest", "latest", cwd=tmp_path)
    assert signed.returncode == 0
    assert "signed 7 statements" in signed.stderr
    assert labaudit("verify", "latest", "--key", unsigned.lab.public_key, cwd=tmp_path).returncode == 0
    assert labaudit("attest", "latest", "--key", unsigned.lab.signing_key, cwd=tmp_path).returncode == 2


def test_keys_are_made_shown_and_listed(tmp_path: Path) -> None:
    made = labaudit("keys", "new", "--json", cwd=tmp_path)
    key = json.loads(made.stdout)
    assert key["keyid"].startswith("SHA256:")
    assert "private half" in made.stderr
    assert labaudit("keys", "new", cwd=tmp_path).returncode == 4
    assert key["pem"] in labaudit("keys", "show", cwd=tmp_path).stdout
    labaudit("keys", "trust", ".lab/keys/labaudit.pub", "--name", "me", cwd=tmp_path)
    listed = json.loads(labaudit("keys", "list", "--json", cwd=tmp_path).stdout)
    assert [item["name"] for item in listed["own"] + listed["trusted"]] == ["labaudit", "me"]


@pytest.mark.acceptance
def test_recomputing_the_analysis_agrees_and_finds_another_runs(tmp_path: Path) -> None:
    lab = make_run(tmp_path / "analysed")
    home = lab.lab.path.parent
    done = labaudit("verify", "latest", "--key", lab.lab.public_key, "--recompute-analysis", "--json", cwd=home)
    report = json.loads(done.stdout)
    assert (report["verdict"], report["claims"]["analysis"]) == ("verified", "recomputed")
    labaudit("bundle", "latest", "--out", tmp_path / "run.zip", cwd=home)
    done = labaudit("verify", tmp_path / "run.zip", "--integrity-only", "--recompute-analysis", "--json", cwd=home)
    assert json.loads(done.stdout)["claims"]["analysis"] == "recomputed"
    target = tmp_path / "run"
    shutil.copytree(lab.run.path, target)
    (target / "analysis" / "suspects.json").write_bytes(b'{"suspects":[]}')
    done = labaudit("verify", target, "--key", lab.lab.public_key, "--recompute-analysis", "--json", cwd=home)
    found = {(item["code"], item["path"]) for item in json.loads(done.stdout)["findings"]}
    assert ("analysis_mismatch", "analysis/suspects.json") in found


def test_sbom_compares_with_the_image_that_is_given(lab: MadeRun, home: Path, tmp_path: Path) -> None:
    status = b"Package: libc6\nStatus: install ok installed\nVersion: 2.36-9\n\n"
    (tmp_path / "tree/var/lib/dpkg").mkdir(parents=True)
    (tmp_path / "tree/var/lib/dpkg/status").write_bytes(status)
    done = labaudit("sbom", "latest", "--image", tmp_path / "tree", "--out", tmp_path / "out", "--json", cwd=home)
    assert done.returncode == 1
    rows = {row["name"]: row["result"] for row in json.loads(done.stdout)["documents"]}
    assert rows == {"image.cdx.json": "differs", "image.spdx.json": "differs"}
    assert (tmp_path / "out" / "image.spdx.json").is_file()


def test_another_key_is_another_signer(home: Path, tmp_path: Path) -> None:
    PrivateKey.generate().save(tmp_path / "s.key", tmp_path / "s.pub")
    done = labaudit("verify", "latest", "--key", tmp_path / "s.pub", cwd=home)
    assert done.returncode == 3
    assert "signer_not_trusted" in done.stdout


def test_verify_loads_nothing_heavy(home: Path, lab: MadeRun) -> None:
    code = (
        "import sys\n"
        "from labaudit.cli import labaudit\n"
        "labaudit.main(['verify', sys.argv[1], '--key', sys.argv[2]], standalone_mode=False)\n"
        "heavy = {'sigstore', 'docker', 'pandas', 'scipy', 'numpy', 'pyarrow', 'mkdocs', 'in_toto', 'cyclonedx'}\n"
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}), file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", code, str(lab.run.path), str(lab.lab.public_key)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stderr.strip() == "[]", done.stderr
