"""A recorded session's folder to a sealed one: manifest, then a signed statement about it.

The statement is a pure function of manifest and head, so `verify` builds it again and compares.
"""

from __future__ import annotations

from labaudit.attest.manifest import media_type
from labaudit.attest.run_reader import Json, read_document
from labaudit.attest.signers import Signer
from labaudit.attest.statements import statement_about
from labaudit.attest.summary import TOOL
from labaudit.core.clock import Clock, rfc3339
from labaudit.core.digest import Digest, hash_file, sha256_hex
from labaudit.core.merkle import tree_root
from labaudit.errors import BadInput
from labaudit.store import atomic
from labaudit.store.session_folder import SessionFolder

SESSION_PREDICATE = "https://agent-lab.local/attestations/session/v1"


def seal_session(folder: SessionFolder, signer: Signer | None, *, clock: Clock) -> Digest:
    """Writes manifest.json and, with a signer, its signature; returns the manifest's digest."""
    if folder.sealed:
        raise BadInput("the session is sealed already", where=str(folder.path), hint="a sealed session never changes")
    head = atomic.read_bytes(folder.events_head)
    session = read_document(folder.session)
    manifest: Json = {
        "schema_version": "manifest_v1",
        "run_id": session["session_id"],
        "created_at": rfc3339(clock.now()),
        "tool": TOOL,
        "resolved_digest": "sha256:" + hash_file(folder.session)[0],
        "run_tree": {"size": 1, "root": tree_root([head]).hex()},
        "files": [_entry(folder, path.relative_to(folder.path).as_posix()) for path in folder.files()],
    }
    data = atomic.write_json(folder.manifest, manifest)
    if signer is not None:
        statement = session_statement(session, read_document(folder.events_head), sha256_hex(data))
        atomic.write_bytes(folder.bundle, signer.bundle(statement))
    return Digest.of(data)


def session_statement(session: Json, head: Json, manifest_sha256: str) -> bytes:
    """The exact payload that is signed: who talked is not claimed, only what was recorded."""
    predicate: Json = {
        "session_id": session["session_id"],
        "kind": session["kind"],
        "created_at": session["created_at"],
        "events": {key: head[key] for key in ("count", "size", "sha256", "head", "tree_root")},
    }
    return statement_about("manifest.json", manifest_sha256, SESSION_PREDICATE, predicate)


def _entry(folder: SessionFolder, name: str) -> Json:
    digest, size = hash_file(folder.path / name)
    return {"path": name, "size": size, "sha256": digest, "media_type": media_type(name)}
