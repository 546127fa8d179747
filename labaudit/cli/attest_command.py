"""`labaudit attest`: shows what a run's attestations say, or signs a sealed run that nobody signed yet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from labaudit.attest.bundles import MAX_BUNDLE, parse_bundle
from labaudit.attest.seal import sign_run
from labaudit.attest.signers import KeylessSigner, KeySigner, Signer
from labaudit.attest.statements import PREDICATE_TYPES
from labaudit.attest.timestamps import TimestampAuthority
from labaudit.attest.trust_store import LabKeys, ensure_keys
from labaudit.core.strict_json import parse_object
from labaudit.errors import BadInput
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder
from labaudit.store.run_folder import RunFolder

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("run")
@click.option("--key", type=_FILE, help="The private key to sign with (default: the lab's own).")
@click.option("--keyless", is_flag=True, help="Sign with an OpenID identity through Sigstore.")
@click.option("--trust-config", type=_FILE, help="The Sigstore services to use, for --keyless.")
@click.option("--identity-token", help="The identity for --keyless (default: the one that CI offers).")
@click.option("--timestamp-url", help="An RFC 3161 authority that stamps each signature.")
@click.option("--show", "kind", type=click.Choice(list(PREDICATE_TYPES)), help="Print one statement as JSON.")
@click.option("--lab-dir", type=_FILE, help="The lab folder (default: .lab).")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
def attest(run: str, kind: str | None, lab_dir: Path | None, as_json: bool, **options: Any) -> None:
    """Show the attestations of RUN; sign them first if the run is sealed and unsigned.

    A signed run is never signed again: what it says is fixed.

    Example: labaudit attest latest --show grades
    """
    lab = LabFolder.locate(lab_dir)
    folder = lab.find_run(run)
    if not folder.sealed:
        raise BadInput("the run is not sealed yet", where=str(folder.path), hint="finish it: labaudit resume RUN")
    if not folder.bundle("run").is_file():
        keys = ensure_keys(lab, key_path=options["key"])
        made = sign_run(folder, _signer(keys, options), log_key=keys.log, layout_key=keys.signing)
        click.echo(f"signed {len(made.kinds)} statements by {made.signer}", err=True)
    elif options["key"] or options["keyless"]:
        raise BadInput("the run is signed already", where=str(folder.path), hint="a sealed run is never changed")
    _show(folder, kind, as_json)


def _signer(keys: LabKeys, options: dict[str, Any]) -> Signer:
    if options["keyless"]:
        return KeylessSigner(trust_config=options["trust_config"], identity_token=options["identity_token"])
    url = options["timestamp_url"]
    return KeySigner(keys.signing, TimestampAuthority(url) if url else None)


def _show(folder: RunFolder, kind: str | None, as_json: bool) -> None:
    rows = [_row(folder, name) for name in PREDICATE_TYPES if folder.bundle(name).is_file()]
    if kind is not None:
        chosen = [row for row in rows if row["kind"] == kind]
        if not chosen:
            raise BadInput(f"the run has no {kind} attestation", where=str(folder.path))
        click.echo(json.dumps(chosen[0]["statement"], indent=None if as_json else 2, ensure_ascii=False))
    elif as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
    else:
        for row in rows:
            click.echo(f"{row['kind']:<15} {row['predicateType']}")
        if rows:
            click.echo(
                f"signer          {rows[0]['keyid'] or 'keyless'} (as the file says: `labaudit verify` checks it)"
            )


def _row(folder: RunFolder, kind: str) -> dict[str, Any]:
    path = folder.bundle(kind)
    bundle = parse_bundle(atomic.read_bytes(path, max_bytes=MAX_BUNDLE), where=str(path))
    statement = parse_object(bundle.envelope.payload, where=str(path))
    return {
        "kind": kind,
        "path": str(path),
        "predicateType": statement.get("predicateType"),
        "keyid": bundle.envelope.keyid,
        "keyless": bundle.keyless,
        "statement": statement,
    }
