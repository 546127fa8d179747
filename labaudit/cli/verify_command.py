"""`labaudit verify`: a target and whom to trust to a verdict, a report and an exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from labaudit.errors import BadInput
from labaudit.store import atomic
from labaudit.store.lab_folder import LabFolder
from labaudit.verify.policy import load_policy
from labaudit.verify.render import report_lines
from labaudit.verify.request import Recompute, Request
from labaudit.verify.targets import locate, verify_target
from labaudit.verify.trust import gather_anchors

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("target", required=False)
@click.option("--key", "keys", type=_FILE, multiple=True, help="A public key (PEM) to trust; may be given again.")
@click.option("--identity", help="The identity in a keyless signer's certificate, compared whole.")
@click.option("--issuer", help="The OpenID issuer that vouches for --identity.")
@click.option("--trusted-root", type=_FILE, help="A Sigstore trusted root (default: the public one, as installed).")
@click.option("--policy", "policy_name", default="default", show_default=True, help="A bundled policy or a file.")
@click.option("--integrity-only", is_flag=True, help="Only whether all is intact; says that no signer was established.")
@click.option("--emit-vsa", type=_FILE, help="Write the verdict as a signed SLSA verification summary.")
@click.option("--vsa-key", type=_FILE, help="The private key that signs --emit-vsa (default: the lab's own).")
@click.option("--seen", type=_FILE, help="A checkpoint kept from before: history may have grown, never changed.")
@click.option("--rebuild", metavar="RUN", help="For a site: render the pages of RUN again and compare.")
@click.option("--recompute-analysis", is_flag=True, help="Compute the analysis again and compare.")
@click.option("--page-digest", is_flag=True, help="Print the digest of this version's verify.html and end.")
@click.option("--lab-dir", type=_FILE, help="The lab folder, for names of runs and the trust store (default: .lab).")
@click.option("--json", "as_json", is_flag=True, help="One JSON report on stdout.")
def verify(target: str | None, as_json: bool, **options: Any) -> None:
    """Check TARGET: a run (folder, id, prefix, latest), a bundle .zip, a site folder or a .tlog-proof.

    Ends with 0 verified, 1 failed, 2 malformed or unreadable, 3 policy unmet (also: nobody to trust was named).

    Example: labaudit verify latest --key publisher.pub
    """
    if options["page_digest"]:
        from labaudit.cli.verify_on_demand import page_digest

        said = page_digest()
        pairs = [line.split(maxsplit=1) for line in said.splitlines()]
        click.echo(json.dumps({name: digest for digest, name in pairs}) if as_json else said)
        return
    if target is None:
        raise click.UsageError("Missing argument 'TARGET'.")
    lab = LabFolder.locate(options["lab_dir"])
    path = locate(target, lab)
    report = verify_target(path, _request(path, lab, options))
    if options["emit_vsa"] is not None:
        from labaudit.verify.vsa import write_vsa

        signer = write_vsa(report, options["emit_vsa"], lab, key_path=options["vsa_key"])
        click.echo(_vsa_line(options["emit_vsa"], signer), err=True)
    lines = [json.dumps(report.as_json(), ensure_ascii=False)] if as_json else report_lines(report)
    for line in lines:
        click.echo(line)
    click.get_current_context().exit(report.exit_code)


def _vsa_line(path: Path, signer: str | None) -> str:
    if signer is None:
        return "no summary was written: the target gives no subject to speak about"
    return f"summary written to {path}, signed by {signer}"


def _request(path: Path, lab: LabFolder, options: dict[str, Any]) -> Request:
    recompute: Recompute | None = None
    rebuild: Recompute | None = None
    if options["recompute_analysis"]:
        from labaudit.cli.verify_on_demand import recompute_analysis

        recompute = recompute_analysis
    if options["rebuild"] is not None:
        from labaudit.cli.verify_on_demand import rebuild_from

        rebuild = rebuild_from(lab.find_run(options["rebuild"]))
    seen = options["seen"]
    if seen is not None and not seen.is_file():
        raise BadInput("there is no such file", where=str(seen), hint="--seen takes a checkpoint that you kept")
    return Request(
        anchors=gather_anchors(
            keys=options["keys"],
            identity=options["identity"],
            issuer=options["issuer"],
            trusted_root=options["trusted_root"],
            lab=lab,
            target=path,
        ),
        policy=load_policy(options["policy_name"]),
        integrity_only=options["integrity_only"],
        seen=None if seen is None else atomic.read_bytes(seen, max_bytes=64 * 1024),
        recompute_analysis=recompute,
        rebuild=rebuild,
    )
