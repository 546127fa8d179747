"""Steps that spoil a copy of a run, each by the name that a case's `case.yaml` calls it by.

A step changes files; `refresh` and the steps named `reseal...` then do what a dishonest but skilled author would do:
make digests, records, trees and signatures fit the defect, with the key that the verifier trusts.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from labaudit.attest import bundles
from labaudit.attest.checkpoint import RUN_ORIGIN, parse_checkpoint, sign_checkpoint
from labaudit.attest.derived_files import envelopes_file, sums_of_run
from labaudit.attest.dsse import seal
from labaudit.attest.keys import PrivateKey
from labaudit.attest.layout import LAYOUT_NAME, sign_payload
from labaudit.attest.log_key import LogKey
from labaudit.attest.proofs import ProofWriter
from labaudit.attest.run_reader import read_totals
from labaudit.attest.seal import seal_run, sign_run
from labaudit.attest.signers import KeySigner
from labaudit.attest.statements import PREDICATE_TYPES
from labaudit.core import hashchain
from labaudit.core.canonical import canonical_bytes
from labaudit.core.clock import FixedClock
from labaudit.core.merkle import ProofTree
from labaudit.store.run_folder import RunFolder
from tests.conformance.verify import rewriting
from tests.worker_run import sign_receipt_anew


@dataclass
class Spoiled:
    """A copy of a run on its way to being spoiled. A and B are completed trials of two tasks."""

    path: Path
    other: Path
    signing: PrivateKey
    log_key: LogKey
    a: str
    b: str
    artifact: str

    @property
    def run(self) -> RunFolder:
        return RunFolder(self.path)

    def name(self, text: str) -> str:
        """Text of a case with its placeholders filled in."""
        link = next((path.name.split(".")[1] for path in (self.path / "attestations").glob("seal.*.link")), "")
        manifest = sha256(self.run.manifest.read_bytes()).hexdigest() if self.run.manifest.is_file() else ""
        known = {"A": self.a, "B": self.b, "run": self.path.name, "key": link, "artifact": self.artifact}
        for key, value in {**known, "manifest": manifest}.items():
            text = text.replace("{" + key + "}", value)
        return text

    def file(self, text: str) -> Path:
        return self.path / self.name(text)


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


# --- any file --------------------------------------------------------------------------------------------------


def edit(run: Spoiled, file: str, old: str, new: str) -> None:
    path = run.file(file)
    data = path.read_bytes()
    assert old.encode() in data, f"{file} holds no {old!r}"
    _put(path, data.replace(old.encode(), new.encode(), 1))


def flip(run: Spoiled, file: str, at: int) -> None:
    data = bytearray(run.file(file).read_bytes())
    data[at] ^= 1
    _put(run.file(file), bytes(data))


def write(run: Spoiled, file: str, text: str = "x") -> None:
    run.file(file).parent.mkdir(parents=True, exist_ok=True)
    _put(run.file(file), text.encode())


def delete(run: Spoiled, file: str) -> None:
    path = run.file(file)
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def link(run: Spoiled, file: str, to: str) -> None:
    run.file(file).unlink(missing_ok=True)
    run.file(file).symlink_to(run.name(to))


def fifo(run: Spoiled, file: str) -> None:
    run.file(file).unlink(missing_ok=True)
    os.mkfifo(run.file(file))


def unix_socket(run: Spoiled, file: str) -> None:
    run.file(file).unlink(missing_ok=True)
    here = Path.cwd()
    try:
        os.chdir(run.file(file).parent)  # a socket's path is short
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(run.file(file).name)
    finally:
        os.chdir(here)


def chmod(run: Spoiled, file: str, mode: int) -> None:
    run.file(file).chmod(mode)


def swap(run: Spoiled, one: str, two: str) -> None:
    first, second = run.file(one).read_bytes(), run.file(two).read_bytes()
    _put(run.file(one), second)
    _put(run.file(two), first)


def copy(run: Spoiled, source: str, file: str) -> None:
    _put(run.file(file), run.file(source).read_bytes())


def from_other_run(run: Spoiled, file: str) -> None:
    _put(run.file(file), (run.other / run.name(file)).read_bytes())


def set_json(run: Spoiled, file: str, at: list[Any], value: Any) -> None:
    """Sets one place of a canonical JSON file; a value may name a trial or the run."""
    document = json.loads(run.file(file).read_bytes())
    target = document
    for key in at[:-1]:
        target = target[key]
    target[at[-1]] = json.loads(run.name(json.dumps(value)))
    _put(run.file(file), canonical_bytes(document))


def move_trials_out(run: Spoiled) -> None:
    """trials/ stands elsewhere and is linked from where it was."""
    elsewhere = run.path.parent / "elsewhere"
    run.run.trials.rename(elsewhere)
    run.run.trials.symlink_to(elsewhere)


def _put(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(data)


# --- event logs ------------------------------------------------------------------------------------------------


def event_lines(run: Spoiled, file: str, do: str) -> None:
    path = run.file(file)
    lines = _lines(path)
    if do == "reorder":
        lines[2], lines[3] = lines[3], lines[2]
    elif do == "delete_middle":
        del lines[3]
    elif do == "truncate_tail":
        lines.pop()
    elif do == "duplicate":
        lines.insert(3, lines[2])
    elif do == "crlf":
        lines = [line[:-1] + b"\r\n" for line in lines]
    elif do == "bom":
        lines[0] = b"\xef\xbb\xbf" + lines[0]
    elif do == "no_final_newline":
        lines[-1] = lines[-1][:-1]
    elif do == "splice":
        lines[4:] = _lines(run.file("trials/{B}/events.jsonl"))[4:]
    else:
        raise AssertionError(do)
    _put(path, b"".join(lines))


def rechain(run: Spoiled, file: str, line: int, old: str, new: str, keep: int = 0) -> None:
    """Edits the raw text of one event and computes every hash after it again; `keep` cuts the log to so many lines."""
    path = run.file(file)
    lines = _lines(path)[: keep or None]
    record = json.loads(run.file("trials/{A}/trial_record.json").read_bytes())
    ids = record["ids"]
    prev = hashchain.genesis(ids["run_id"], ids["trial_id"], record["attempt"], record["resolved_digest"])
    made = []
    for number, raw in enumerate(lines):
        body, _, _ = hashchain.split(raw[:-1])
        if number == line:
            spot = _bytes(old)
            assert spot in body, f"line {line} holds no {old!r}: {body!r}"
            body = body.replace(spot, _bytes(new), 1)
        own = sha256(prev.encode() + b"\n" + body).hexdigest()
        cut = body.find(b',"ids":{') + 1
        made.append(body[:cut] + f'"hashchain":{{"prev":"{prev}","self":"{own}"}},'.encode() + body[cut:] + b"\n")
        prev = own
    _put(path, b"".join(made))


def _bytes(text: str) -> bytes:
    """Text of a case as bytes: `<80>` is the byte 0x80, `<fill N>` N letters, `<deep N>` N nested arrays."""
    if text.startswith("<fill "):
        return b"x" * int(text[6:-1])
    if text.startswith("<deep "):
        depth = int(text[6:-1])
        return b'"event_type":' + b"[" * depth + b"]" * depth
    return text.encode().replace(b"<80>", b"\x80")


def append_event(run: Spoiled, file: str) -> None:
    """One more well-chained event behind the sealed end."""
    lines = _lines(run.file(file))
    event = json.loads(lines[-1])
    prev = event.pop("hashchain")["self"]
    event["seq"] += 1
    line, _ = hashchain.link(prev, event)
    _put(run.file(file), b"".join([*lines, line + b"\n"]))


# --- making it fit again -----------------------------------------------------------------------------------------


def refresh(run: Spoiled, trial: str = "{A}", events: bool = True) -> None:
    """The trial's record lists its files as they are now."""
    folder = run.file(f"trials/{trial}")
    path = folder / "trial_record.json"
    record = json.loads(path.read_bytes())
    record["files"] = [
        {
            "path": item.relative_to(folder).as_posix(),
            "size": item.stat().st_size,
            "sha256": sha256(item.read_bytes()).hexdigest(),
        }
        for item in sorted(folder.rglob("*"))
        if item.is_file() and item != path
    ]
    record["files"].sort(key=lambda entry: entry["path"])
    log = folder / "events.jsonl"
    if events and log.is_file():
        record["events"]["sha256"] = sha256(log.read_bytes()).hexdigest()
    _put(path, canonical_bytes(record))


def reseal(run: Spoiled) -> None:
    """Manifest and signatures anew, over whatever the folder holds."""
    for path in (run.run.manifest, run.run.attestation):
        path.unlink()
    shutil.rmtree(run.run.attestations)
    clock = FixedClock(datetime(2026, 11, 18, 10, tzinfo=UTC))
    seal_run(run.run, KeySigner(run.signing), clock=clock, log_key=run.log_key)


def reseal_signatures(run: Spoiled) -> None:
    """Signatures anew over the manifest as it stands."""
    shutil.rmtree(run.run.attestations)
    sign_run(run.run, KeySigner(run.signing), log_key=run.log_key)


def reseal_by_stranger(run: Spoiled) -> None:
    """The whole run signed by a key that nobody trusts."""
    shutil.rmtree(run.run.attestations)
    sign_run(run.run, KeySigner(PrivateKey.generate()), log_key=LogKey.generate())


def reseal_copies(run: Spoiled) -> None:
    """The files that no signature covers, derived again: envelopes, proofs, SHA256SUMS."""
    folder = run.run
    manifest = json.loads(folder.manifest.read_bytes())
    made = [folder.bundle(kind).read_bytes() for kind in PREDICATE_TYPES if folder.bundle(kind).is_file()]
    with suppress(KeyError, ValueError):  # a bundle that is none has no envelope to copy
        (folder.attestations / f"{manifest['run_id']}.intoto.jsonl").write_bytes(envelopes_file(made))
    totals = read_totals(folder)
    tree = ProofTree(totals.leaves)
    if folder.bundle("run").is_file():
        writer = ProofWriter(folder.bundle("run").read_bytes(), folder.checkpoint.read_bytes())
        rows = [json.loads(line) for line in folder.schedule.read_bytes().splitlines()]
        for index, row in enumerate(rows):
            record = folder.trial(row["trial_id"]).trial_record.read_bytes()
            folder.proof(row["trial_id"]).write_bytes(writer.render(record, index, tree.inclusion(index)))
    sums = b"".join(sums_of_run(folder, manifest, sha256(folder.manifest.read_bytes()).hexdigest()))
    (folder.attestations / "SHA256SUMS").write_bytes(sums)


# --- signatures, links, checkpoint -------------------------------------------------------------------------------


def resign(run: Spoiled, kind: str, at: list[Any] | None = None, value: Any = None, **options: Any) -> None:
    """One statement with a changed place, signed again; `by: stranger`, `payload_type` and `raw` as a case wants."""
    path = run.run.bundle(kind)
    bundle = bundles.parse_bundle(path.read_bytes(), where=kind)
    statement = json.loads(bundle.envelope.payload)
    if at is not None:
        target = statement
        for key in at[:-1]:
            target = target[key]
        target[at[-1]] = json.loads(run.name(json.dumps(value)))
    key = PrivateKey.generate() if options.get("by") == "stranger" else run.signing
    kind_of_payload = options.get("payload_type", bundle.envelope.payload_type)
    envelope = seal(canonical_bytes(statement), key, key.public.keyid, payload_type=kind_of_payload)
    if options.get("raw"):
        # The same signature in another encoding: r and s side by side instead of DER.
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        r, s = decode_dss_signature(envelope.signature)
        envelope = replace(envelope, signature=r.to_bytes(32, "big") + s.to_bytes(32, "big"))
    path.write_bytes(bundles.render(envelope, key.public.hint))


def bundle_json(run: Spoiled, kind: str, at: list[Any], value: Any) -> None:
    """One place of a bundle's own JSON, outside what is signed."""
    set_json(run, f"attestations/{kind}.sigstore.json", at, value)


def layout_with_inspection(run: Spoiled) -> None:
    """A layout, rightly signed, that asks its reader to run a command."""
    path = run.run.attestations / LAYOUT_NAME
    layout = json.loads(base64.b64decode(json.loads(path.read_bytes())["payload"]))
    command = ["touch", str(run.path.parent / "inspected")]
    layout["inspect"] = [
        {"_type": "inspection", "name": "evil", "run": command, "expected_materials": [], "expected_products": []}
    ]
    path.write_bytes(sign_payload(canonical_bytes(layout), run.signing))


def checkpoint(run: Spoiled, origin: str = "", size: int = -1, root: str = "", by: str = "log") -> None:
    """The checkpoint with another origin, size or root, signed by the log's key or a stranger's."""
    old = parse_checkpoint(run.run.checkpoint.read_bytes(), where="checkpoint")
    key = run.log_key if by == "log" else LogKey.generate()
    name = RUN_ORIGIN + origin if origin else old.origin
    new = sign_checkpoint(name, old.size if size < 0 else size, bytes.fromhex(root) if root else old.root, key)
    run.run.checkpoint.write_bytes(new.render())


def receipt_by_stranger(run: Spoiled) -> None:
    """The receipt of a worker thrown away and another signed by a key that took no part."""
    sign_receipt_anew(run.run.trial(run.a), PrivateKey.generate())


STEPS: dict[str, Callable[..., None]] = {
    step.__name__: step
    for step in (
        edit, flip, write, delete, link, fifo, unix_socket, chmod, swap, copy, from_other_run, set_json,
        move_trials_out, event_lines, rechain, append_event, refresh, reseal, reseal_signatures, reseal_by_stranger,
        reseal_copies, resign, bundle_json, layout_with_inspection, checkpoint, receipt_by_stranger,
    )
} | rewriting.STEPS  # fmt: skip


def spoil(run: Spoiled, steps: list[dict[str, dict[str, Any]] | str]) -> None:
    """Runs the steps of a case in order."""
    for step in steps:
        if isinstance(step, str):
            STEPS[step](run)
        else:
            for name, options in step.items():
                STEPS[name](run, **(options or {}))
