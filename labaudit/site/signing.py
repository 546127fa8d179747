"""A finished site to its signature and its entry in the publication log; neither is part of what the index lists."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from labaudit.attest.log_key import LogKey
from labaudit.attest.publication_log import append_run, publication_verifier
from labaudit.attest.signers import KeySigner, Signer
from labaudit.attest.site_statement import SITE_BUNDLE, sign_site
from labaudit.attest.trust_store import ensure_keys
from labaudit.site.output import SiteWriter
from labaudit.site.reading.published_run import PublishedRun
from labaudit.store.lab_folder import LabFolder


@dataclass(frozen=True)
class Publisher:
    """Who signs the site, and whose publication log it enters; without a log key nothing is logged."""

    signer: Signer
    lab: LabFolder | None = None
    log_key: LogKey | None = None

    @classmethod
    def of_lab(cls, lab: LabFolder, key: Path | None = None) -> Publisher | None:
        """The lab's own keys, or the one given; None for a lab that has never signed anything."""
        if key is None and not lab.signing_key.is_file():
            return None
        keys = ensure_keys(lab, key_path=key)
        return cls(KeySigner(keys.signing), lab, keys.log)


def sign(writer: SiteWriter, index: bytes, runs: Sequence[PublishedRun], publisher: Publisher) -> str:
    """Writes `site.sigstore.json` and `log/`; returns the signer's name."""
    log_key = None
    if publisher.lab is not None and publisher.log_key is not None:
        logged = [run for run in runs if run.folder.checkpoint.is_file()]
        for run in logged:
            append_run(publisher.lab, run.folder, publisher.log_key)
        if logged:
            log_key = str(publication_verifier(publisher.log_key))
            shutil.copytree(publisher.lab.log, writer.temporary("log/checkpoint").parent, dirs_exist_ok=True)
    names = [(run.run_id, run.manifest_sha256) for run in runs]
    writer.temporary(SITE_BUNDLE).write_bytes(sign_site(index, publisher.signer, names, log_key))
    return publisher.signer.name
