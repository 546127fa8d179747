"""The bundles under attestations/ to decoded statements: who signed, about what, and whether the signature is valid.

Valid means: under the key that the run itself names. Whether that key deserves trust is the reader's question, and no
page of the site answers it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from labaudit.attest.bundles import MAX_BUNDLE, Bundle, parse_bundle
from labaudit.attest.keys import PublicKey
from labaudit.core.strict_json import parse_object
from labaudit.errors import LabauditError
from labaudit.store import atomic
from labaudit.store.run_folder import RunFolder

Json = dict[str, Any]
SUFFIX = ".sigstore.json"
_ORDER = ("run", "result", "grades", "evidence", "eval", "sbom-cyclonedx", "sbom-spdx")


@dataclass(frozen=True)
class SignedStatement:
    """One statement; `valid` is None when no key to check with is known (a keyless signature, no named key)."""

    kind: str
    path: str
    statement: Json
    keyid: str
    keyless: bool
    valid: bool | None
    raw: bytes

    @property
    def subject(self) -> Json:
        """The first subject."""
        found = self.statement.get("subject")
        return found[0] if isinstance(found, list) and found and isinstance(found[0], dict) else {}

    @property
    def subject_sha256(self) -> str:
        """The digest of the subject."""
        digest = self.subject.get("digest")
        return str(digest.get("sha256", "")) if isinstance(digest, dict) else ""

    def pretty(self) -> str:
        """The statement as indented JSON."""
        return json.dumps(self.statement, indent=2, sort_keys=True, ensure_ascii=False)


def read_statements(run: RunFolder) -> tuple[list[SignedStatement], list[str]]:
    """All statements in a fixed order, and sentences about bundles that cannot be read."""
    found: list[tuple[str, str, Bundle]] = []
    problems: list[str] = []
    if not run.attestations.is_dir():
        return [], []
    for path in sorted(run.attestations.glob(f"*{SUFFIX}")):
        name = path.relative_to(run.path).as_posix()
        try:
            found.append((path.name.removesuffix(SUFFIX), name, parse_bundle(_bytes(path), where=name)))
        except LabauditError as error:
            problems.append(f"{name} cannot be read: {error.what}")
    key = supplied_key(found)
    statements = []
    for kind, name, bundle in found:
        try:
            statements.append(_decode(kind, name, bundle, key))
        except LabauditError as error:
            problems.append(f"{name} holds no readable statement: {error.what}")
    statements.sort(key=lambda item: (_ORDER.index(item.kind) if item.kind in _ORDER else len(_ORDER), item.kind))
    problems += [f"{item.path}: the signature does not fit" for item in statements if item.valid is False]
    return statements, problems


def _bytes(path: Any) -> bytes:
    return atomic.read_bytes(path, max_bytes=MAX_BUNDLE)


def _decode(kind: str, name: str, bundle: Bundle, key: PublicKey | None) -> SignedStatement:
    envelope = bundle.envelope
    statement = parse_object(envelope.payload, where=name)
    valid = None if bundle.keyless or key is None else key.verifies(envelope.signature, envelope.signed_bytes)
    return SignedStatement(kind, name, statement, envelope.keyid, bundle.keyless, valid, bundle.raw)


def supplied_key(found: list[tuple[str, str, Bundle]]) -> PublicKey | None:
    """The public key that the run attestation names: a hint for checking, never a reason to trust."""
    for kind, name, bundle in found:
        if kind == "run":
            try:
                pem = named_key(parse_object(bundle.envelope.payload, where=name))
                return PublicKey.from_pem(pem.encode(), where=name) if pem else None
            except LabauditError:
                return None
    return None


def named_key(statement: Json) -> str | None:
    """The PEM of the layout key inside a run statement."""
    value: Any = statement
    for part in ("predicate", "buildDefinition", "internalParameters", "layout_key"):
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None
