"""The scripts of verify.html against the same evidence that `labaudit verify` reads: both must give the same answer."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labaudit.attest.bundle_zip import write_bundle
from labaudit.attest.keys import PrivateKey, PublicKey
from labaudit.core import merkle
from labaudit.core.canonical import canonical_bytes
from labaudit.resources import template_dir
from labaudit.site import build_site
from labaudit.verify.request import Anchors, Request
from labaudit.verify.targets import verify_target
from tests.make_run import MadeRun, RunPlan, make_run

pytestmark = pytest.mark.node
HERE = Path(__file__).parent
Json = dict[str, Any]


def node(vectors: list[Json]) -> list[Any]:
    """What the scripts answer."""
    done = subprocess.run(
        ["node", str(HERE / "check_vectors.js"), str(template_dir() / "assets")],
        input=json.dumps(vectors),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.split("\n") if line]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeRun:
    return make_run(tmp_path_factory.mktemp("run"), RunPlan(tasks=3, events=12))


@pytest.fixture(scope="module")
def shard(made: MadeRun, tmp_path_factory: pytest.TempPathFactory) -> Json:
    built = build_site([made.run.path], tmp_path_factory.mktemp("site") / "site")
    text = (built.path / "data" / "check-000.js").read_text("utf-8")
    return json.loads(text[text.index(",") + 1 : text.rindex(")")])


@pytest.fixture(scope="module")
def name(shard: Json) -> str:
    return next(name for name, trial in sorted(shard["trials"].items()) if trial["events"].count("\n") > 10)


def test_hashes_are_those_of_the_standard_library():
    rng = random.Random(8)
    data = [rng.randbytes(size) for size in [*range(130), 1000, 65_537]]
    (found,) = node([{"kind": "sha256", "data": [item.hex() for item in data]}])
    assert found == [hashlib.sha256(item).hexdigest() for item in data]


def test_trees_and_inclusion_proofs_agree_with_core():
    leaves = [bytes([number]) * number for number in range(40)]
    hashes = [merkle.leaf_hash(leaf) for leaf in leaves]
    proofs, wanted = [], []
    for size in range(1, 41):
        root = merkle.root_of_hashes(hashes[:size])
        for index in range(size):
            path = merkle.inclusion_proof(hashes[:size], index)
            for claimed in {index, (index + 1) % size, size}:
                item = {"leaf": leaves[index].hex(), "index": claimed, "size": size, "root": root.hex()}
                proofs.append({**item, "path": [part.hex() for part in path]})
                wanted.append(merkle.verify_inclusion(hashes[index], claimed, size, path, root))
    roots, answers = node(
        [{"kind": "tree", "leaves": [leaf.hex() for leaf in leaves]}, {"kind": "inclusion", "proofs": proofs}]
    )
    assert roots == [merkle.root_of_hashes(hashes[:size]).hex() for size in range(1, 41)]
    assert answers == wanted
    assert True in answers
    assert False in answers


def test_canonical_json_agrees_with_core():
    values = [
        {"b": 1, "a": [True, None, -0.5, 1e21, 1e-7, 0.1]},
        {"\u20ac": "\u20ac", "\r": "\x01\"\\", "é": "\u2028", "💥": 1},
        {"10": 1, "9": 2, "a": {"z": {}, "y": []}}, [5e-324, 9007199254740991, 123456789.125],
    ]  # fmt: skip
    (found,) = node([{"kind": "canonical", "texts": [json.dumps(value) for value in values]}])
    assert found == [canonical_bytes(value).decode() for value in values]


def test_a_key_has_the_fingerprint_that_the_command_line_shows(made):
    assert node([{"kind": "keyid", "pem": made.signing.public.pem}]) == [made.signing.public.keyid]


def test_a_trial_is_verified_with_the_readers_key_and_never_without_it(made, shard, name):
    base = {"kind": "trial", "run": shard["run"], "name": name, "trial": shard["trials"][name]}
    other = PrivateKey.generate().public.pem
    good, without, wrong, insecure = node(
        [{**base, "key": made.signing.public.pem}, base, {**base, "key": other}, {**base, "subtle": False}]
    )
    assert good["overall"] == "verified"
    assert without["overall"] == "not checked"
    signature = without["results"][-1]
    assert signature["state"] == "not checked"
    assert "which this site supplied" in signature["detail"]
    assert made.signing.public.keyid in signature["detail"]
    assert wrong["overall"] == "FAILED"
    assert insecure["overall"] == "not checked"
    states = {item["name"]: item["state"] for item in insecure["results"]}
    assert states["event chain"] == states["place in the run tree"] == "verified"
    assert states["signature"] == states["checkpoint"] == "not checked"


def flipped(text: str, line: int, place: float) -> str:
    """One character of one line changed into another."""
    lines = text.split("\n")
    at = int(len(lines[line]) * place)
    lines[line] = lines[line][:at] + ("0" if lines[line][at] != "0" else "1") + lines[line][at + 1 :]
    return "\n".join(lines)


def cli_line(made: MadeRun, name: str, events: str, folder: Path) -> tuple[str, str]:
    """Verdict of the command line's verifier on the run with this log, and the place it names for the log."""
    copy = folder / "run"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(made.run.path, copy)
    (copy / "trials" / name / "events.jsonl").write_bytes(events.encode())
    report = verify_target(copy, Request(anchors=Anchors(keys=(made.signing.public,))))
    places = [item.path for item in report.findings if item.path.startswith(f"trials/{name}/events.jsonl:")]
    return report.verdict, places[0] if places else ""


@pytest.mark.parametrize("line", [0, 1, 6, 13])
def test_a_flipped_byte_is_named_at_the_same_event_by_the_page_and_the_command_line(made, shard, name, line, tmp_path):
    trial = shard["trials"][name]
    # In the middle of a line stands its own chain or content; both ways lead to the same event.
    events = flipped(trial["events"], line, 0.9)
    (answer,) = node(
        [{"kind": "trial", "run": shard["run"], "name": name, "trial": {**trial, "events": events},
          "key": made.signing.public.pem}]
    )  # fmt: skip
    verdict, place = cli_line(made, name, events, tmp_path)
    assert answer["overall"] == "FAILED"
    assert answer["results"][0]["event"] == line
    assert verdict in ("failed", "malformed")
    assert place.endswith(f"events.jsonl:{line + 1}")


def drop(number: int) -> Callable[[str], str]:
    return lambda text: "\n".join(line for place, line in enumerate(text.split("\n")) if place != number)


TAMPERED: dict[str, tuple[Callable[[str], str], int | None]] = {
    "reorder": (
        lambda text: "\n".join([*text.split("\n")[:3], *text.split("\n")[3:5][::-1], *text.split("\n")[5:]]),
        3,
    ),
    "delete in the middle": (drop(5), 5),
    "truncate": (lambda text: "\n".join(text.split("\n")[:8]) + "\n", 8),
    "append": (lambda text: text + text.split("\n")[-2] + "\n", 14),
    "duplicate": (lambda text: "\n".join([*text.split("\n")[:4], text.split("\n")[3], *text.split("\n")[4:]]), 4),
    "no final newline": (lambda text: text[:-1], 13),
    "carriage return": (lambda text: text.replace("\n", "\r\n", 1), 0),
    "spaces": (lambda text: text.replace('"attempt":1', '"attempt": 1', 1), 0),
    "duplicate key": (lambda text: text.replace('"attempt":1', '"attempt":1,"attempt":1', 1), 0),
    "byte order mark": (lambda text: "\ufeff" + text, 0),
    "empty": (lambda text: "", 0),
}


@pytest.mark.parametrize("attack", sorted(TAMPERED))
def test_every_attack_on_the_log_fails_on_the_page_as_on_the_command_line(made, shard, name, attack, tmp_path):
    change, event = TAMPERED[attack]
    trial = shard["trials"][name]
    events = change(trial["events"])
    assert events != trial["events"]
    (answer,) = node([{"kind": "trial", "run": shard["run"], "name": name, "trial": {**trial, "events": events}}])
    verdict, _ = cli_line(made, name, events, tmp_path)
    assert answer["overall"] == "FAILED"
    assert answer["results"][0]["event"] == event
    assert verdict in ("failed", "malformed")


def test_evidence_of_another_trial_or_run_fails(made, shard, name, tmp_path):
    other = next(key for key, value in sorted(shard["trials"].items()) if key != name and value.get("events"))
    mine, theirs = shard["trials"][name], shard["trials"][other]
    swapped = {**mine, "events": theirs["events"]}
    record = {**mine, "record": theirs["record"]}
    place = {**mine, "path": theirs["path"]}
    manifest = {**shard["run"], "manifest": shard["run"]["manifest"].replace('"size":', '"size":1', 1)}
    base = {"kind": "trial", "name": name, "run": shard["run"], "key": made.signing.public.pem}
    vectors = [
        {**base, "trial": swapped}, {**base, "trial": record}, {**base, "trial": place},
        {**base, "trial": mine, "run": manifest},
        {**base, "trial": mine, "run": {**shard["run"], "checkpoint": flipped(shard["run"]["checkpoint"], 1, 0)}},
        {**base, "trial": mine, "run": {**shard["run"], "bundle": flipped(shard["run"]["bundle"], 0, 0.5)}},
    ]  # fmt: skip
    assert [answer["overall"] for answer in node(vectors)] == ["FAILED"] * len(vectors)


def test_a_record_that_was_forged_together_with_its_log_fails_at_the_tree(made, shard, name):
    trial = shard["trials"][name]
    record = json.loads(trial["record"])
    record["outcome"] = "error"
    forged = {**trial, "record": canonical_bytes(record).decode()}
    (answer,) = node([{"kind": "trial", "run": shard["run"], "name": name, "trial": forged}])
    states = {item["name"]: item["state"] for item in answer["results"]}
    assert states["event chain"] == "verified"
    assert states["place in the run tree"] == "FAILED"


def test_a_proof_file_is_checked_without_the_rest_of_the_run(made, name):
    data = made.run.proof(name).read_bytes()
    broken = data.replace(b"index ", b"index 1", 1)
    good, bad = node(
        [{"kind": "proof", "bytes": base64.b64encode(item).decode(), "key": made.signing.public.pem}
         for item in (data, broken)]
    )  # fmt: skip
    states = {item["name"]: item["state"] for item in good["results"]}
    assert states.pop("event chain") == "not checked"
    assert set(states.values()) == {"verified"}
    assert bad["overall"] == "FAILED"


def bundle_of(run: Path, folder: Path) -> str:
    write_bundle(run, "run", folder / "run.zip")
    return base64.b64encode((folder / "run.zip").read_bytes()).decode()


def test_a_whole_bundle_is_verified(made, tmp_path):
    (answer,) = node([{"kind": "zip", "bytes": bundle_of(made.run.path, tmp_path), "key": made.signing.public.pem}])
    assert answer["overall"] == "verified", answer


def flip_file(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(bytes(data))


ATTACKS: dict[str, Callable[[Path, str], None]] = {
    "grades edited": lambda run, name: flip_file(run / "grades.json"),
    "stdout edited": lambda run, name: flip_file(run / "trials" / name / "stdout.log"),
    "event edited": lambda run, name: flip_file(run / "trials" / name / "events.jsonl"),
    "record edited": lambda run, name: flip_file(run / "trials" / name / "trial_record.json"),
    "artifact edited": lambda run, name: flip_file(next(iter(sorted((run / "artifacts" / "sha256").iterdir())))),
    "sidecar edited": lambda run, name: flip_file(next(iter(sorted((run / "artifacts" / "meta").iterdir())))),
    "file added": lambda run, name: (run / "extra.txt").write_text("x") and None,
    "file removed": lambda run, name: (run / "analysis" / "summary.json").unlink(),
    "statement edited": lambda run, name: flip_file(run / "attestations" / "grades.sigstore.json"),
    "checkpoint edited": lambda run, name: flip_file(run / "attestations" / "checkpoint"),
    "manifest edited": lambda run, name: flip_file(run / "manifest.json"),
}


@pytest.mark.parametrize("attack", sorted(ATTACKS))
def test_a_bundle_that_the_command_line_refuses_is_refused_by_the_page(made, name, attack, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(made.run.path, copy)
    ATTACKS[attack](copy, name)
    (answer,) = node([{"kind": "zip", "bytes": bundle_of(copy, tmp_path), "key": made.signing.public.pem}])
    report = verify_target(copy, Request(anchors=Anchors(keys=(PublicKey.from_pem(made.signing.public.pem.encode()),))))
    assert answer["overall"] == "FAILED"
    assert report.verdict in ("failed", "malformed")
