"""`labaudit keys`: makes a signing pair, shows keys, and keeps the list of public keys that a lab trusts."""

from __future__ import annotations

import json
from pathlib import Path

import click

from labaudit.attest.keys import PublicKey
from labaudit.attest.trust_store import (
    NamedKey,
    new_pair,
    own_keys,
    passphrase_from_environment,
    readable_by_others,
    trust,
    trusted_keys,
)
from labaudit.errors import BadInput
from labaudit.store.lab_folder import LabFolder

lab_option = click.option("--lab-dir", type=click.Path(path_type=Path), help="The lab folder (default: .lab).")
json_option = click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")


@click.group()
def keys() -> None:
    """Local signing keys and the trust store.

    Example: labaudit keys new
    """


@keys.command()
@click.option("--name", default="labaudit", show_default=True, help="File name of the pair.")
@click.option("--passphrase", is_flag=True, help="Ask for a passphrase (or set LABAUDIT_KEY_PASSPHRASE).")
@lab_option
@json_option
def new(name: str, passphrase: bool, lab_dir: Path | None, as_json: bool) -> None:
    """Make a P-256 signing pair in keys/ of the lab; the private half is readable by its owner alone.

    Example: labaudit keys new --name release --passphrase
    """
    secret = passphrase_from_environment()
    if passphrase:
        secret = click.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True).encode()
    made = new_pair(LabFolder.locate(lab_dir), name=name, passphrase=secret)
    _render([made], as_json, one=True)
    click.echo(f"private half: {made.path.with_suffix('.key')} (keep it to yourself)", err=True)
    click.echo(f"give others the public half: labaudit keys trust {made.path}", err=True)


@keys.command()
@click.argument("key", default="labaudit")
@lab_option
@json_option
def show(key: str, lab_dir: Path | None, as_json: bool) -> None:
    """Show the names of KEY (a name in this lab, or a .pub file) that other tools use, and its PEM.

    Example: labaudit keys show publisher.pub
    """
    _render([_find(LabFolder.locate(lab_dir), key)], as_json, one=True, with_pem=True)


@keys.command("trust")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", help="The name to trust it by (default: the file's).")
@lab_option
@json_option
def trust_key(file: Path, name: str | None, lab_dir: Path | None, as_json: bool) -> None:
    """Trust the public key in FILE: `labaudit verify` accepts its signatures from now on.

    Compare the fingerprint with its owner first, over a way that the file did not come by.

    Example: labaudit keys trust publisher.pub --name publisher
    """
    _render([trust(LabFolder.locate(lab_dir), file, name=name)], as_json, one=True)


@keys.command("list")
@lab_option
@json_option
def list_keys(lab_dir: Path | None, as_json: bool) -> None:
    """List the lab's own keys and those that it trusts.

    Example: labaudit keys list --json
    """
    lab = LabFolder.locate(lab_dir)
    own, trusted = own_keys(lab), trusted_keys(lab.trust)
    if as_json:
        found = {"own": [_as_json(item) for item in own], "trusted": [_as_json(item) for item in trusted]}
        click.echo(json.dumps(found))
        return
    for title, items in (("own", own), ("trusted", trusted)):
        for item in items:
            click.echo(f"{title:<8} {item.name:<20} {item.key.keyid}")
            private = item.path.with_suffix(".key")
            if title == "own" and private.is_file() and readable_by_others(private):
                click.echo(f"labaudit: others can read {private}: chmod 600 it", err=True)
    if not own and not trusted:
        click.echo("no keys yet: labaudit keys new", err=True)


def _find(lab: LabFolder, name: str) -> NamedKey:
    for item in [*own_keys(lab), *trusted_keys(lab.trust)]:
        if item.name == name:
            return item
    path = Path(name)
    if path.is_file():
        return NamedKey(path.stem, path, PublicKey.load(path))
    raise BadInput(f"there is no key {name!r}", where=str(lab.path), hint="see `labaudit keys list`, or give a file")


def _as_json(item: NamedKey) -> dict[str, str]:
    return {
        "name": item.name,
        "path": str(item.path),
        "keyid": item.key.keyid,
        "sigstore_hint": item.key.hint,
        "intoto_keyid": item.key.intoto_id,
        "pem": item.key.pem,
    }


def _render(items: list[NamedKey], as_json: bool, *, one: bool = False, with_pem: bool = False) -> None:
    if as_json:
        found = [_as_json(item) for item in items]
        click.echo(json.dumps(found[0] if one else found))
        return
    for item in items:
        click.echo(f"{item.name}  {item.key.keyid}  {item.path}")
        if with_pem:
            click.echo(f"  Sigstore hint  {item.key.hint}")
            click.echo(f"  in-toto keyid  {item.key.intoto_id}")
            click.echo(item.key.pem, nl=False)
