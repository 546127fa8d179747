"""Signed statements to `attestations.html`: each decoded beside its raw JSON, with the commands that check it.

The site's own statement is not shown here: its subject is the index that lists this page.
"""

from __future__ import annotations

from typing import Any

from labaudit.site.drawing import figures
from labaudit.site.drawing.plain_text import shorten
from labaudit.site.pages.run_pages import RunSite
from labaudit.site.reading.signed_statements import SignedStatement

Json = dict[str, Any]
RAW = 60_000
MEANINGS = {
    "run": "what was run, from which inputs (SLSA provenance)",
    "result": "how the scheduled trials ended (in-toto test result)",
    "grades": "which properties hold (simple verification result)",
    "evidence": "which sources of evidence cover how much (SCAI)",
    "eval": "what was measured, by variant, and how trials ended by their own word (evaluation result)",
    "sbom-cyclonedx": "the packages of the image (CycloneDX)",
    "sbom-spdx": "the packages of the image (SPDX)",
}


def write_attestations(site: RunSite) -> None:
    """`attestations.html` of one run."""
    run = site.run
    statements = [_statement(item, run.manifest_sha256) for item in run.statements]
    key = next((item for item in run.statements if not item.keyless), None)
    site.page(
        "attestations.html",
        "attestations.html",
        statements=statements,
        keyid=key.keyid if key else "",
        commands=_commands(run.run_id, run.statements),
        has_checkpoint=run.folder.checkpoint.is_file(),
        checkpoint=run.folder.checkpoint.read_text("utf-8", "replace") if run.folder.checkpoint.is_file() else "",
    )


def _statement(item: SignedStatement, manifest_sha256: str) -> Json:
    pretty = item.pretty()
    return {
        "kind": item.kind,
        "path": item.path,
        "meaning": MEANINGS.get(item.kind, "a kind that this version does not know"),
        "predicate_type": str(item.statement.get("predicateType")),
        "subject": item.subject,
        "subject_sha256": item.subject_sha256,
        "subject_fits": item.subject_sha256 == manifest_sha256,
        "keyid": item.keyid,
        "keyless": item.keyless,
        "valid": item.valid,
        "facts": _readable_facts(item),
        "raw": shorten(pretty, RAW),
        "cut": len(pretty) > RAW,
    }


def _readable_facts(item: SignedStatement) -> list[tuple[str, str]]:
    """A signer may sign any shape; one that is not the expected one is shown raw only."""
    try:
        return _facts(item)
    except (AttributeError, TypeError, KeyError, ValueError):
        return []


def _facts(item: SignedStatement) -> list[tuple[str, str]]:
    """The few lines of a predicate that a reader asks for first."""
    predicate = item.statement.get("predicate")
    predicate = predicate if isinstance(predicate, dict) else {}
    if item.kind == "run":
        definition = predicate.get("buildDefinition") or {}
        inner = definition.get("internalParameters") or {}
        found = [("engine", inner.get("engine")), ("network asked for", inner.get("network_mode_requested"))]
        found += [
            (f"input {part.get('name')}", "sha256:" + str((part.get("digest") or {}).get("sha256")))
            for part in definition.get("resolvedDependencies") or []
        ]
        metadata = (predicate.get("runDetails") or {}).get("metadata") or {}
        times = [("started", metadata.get("startedOn")), ("sealed", metadata.get("finishedOn"))]
        return [(name, str(value)) for name, value in found] + [(name, figures.clock(when)) for name, when in times]
    if item.kind == "result":
        rows = [("result", str(predicate.get("result"))), ("counts", _flat(predicate.get("counts")))]
        return rows + ([("basis", str(predicate["basis"]))] if "basis" in predicate else [])
    if item.kind == "grades":
        return [("properties", ", ".join(str(one) for one in predicate.get("properties") or []) or "none")]
    if item.kind == "evidence":
        return [
            (str(one.get("attribute")), _flat(one.get("conditions")))
            for one in predicate.get("attributes") or []
            if isinstance(one, dict)
        ]
    if item.kind == "eval":
        return [
            _claim(one)
            for one in predicate.get("claims") or []
            if isinstance(one, dict)
        ]
    return []


def _claim(one: dict[str, Any]) -> tuple[str, str]:
    if "successes" in one:
        said = f"{one['successes']} of {one.get('sampleSize')} trials, by the harness's own word"
        return f"ended with success, {one.get('variant')}", said
    said = f"mean {one.get('value')} of {one.get('sampleSize')} values, from {one.get('source')}"
    return f"{one.get('metric')}, {one.get('variant')}", said


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_flat(part)}" for name, part in sorted(value.items()))
    if isinstance(value, list):
        return "; ".join(_flat(part) for part in value)
    return str(value)


def _commands(run_id: str, statements: list[SignedStatement]) -> list[tuple[str, str]]:
    commands = [("labaudit, everything", "labaudit verify RUN-FOLDER --key publisher.pub")]
    if any(item.kind == "run" and not item.keyless for item in statements):
        commands += [
            (
                "cosign, one statement (written from its documentation)",
                "cosign verify-blob-attestation --key publisher.pub --bundle attestations/run.sigstore.json"
                " --trusted-root attestations/trusted_root.json --insecure-ignore-tlog"
                " --type https://slsa.dev/provenance/v1 manifest.json",
            ),
            (
                "in-toto, layout and links (it checks links, not the disk)",
                "in-toto-verify --layout attestations/root.layout --verification-keys publisher.pub"
                " --link-dir attestations",
            ),
        ]
    return commands
