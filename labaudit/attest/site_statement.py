"""A built site to its signature: a statement whose one subject is `index.json`.

The statement names the runs that the site shows, each by its manifest, and the verifier key of the publication log
under `log/`, so that a reader of the site needs one trust anchor for pages and log alike.
"""

from __future__ import annotations

from collections.abc import Sequence

from labaudit.attest.run_reader import Json
from labaudit.attest.signers import Signer
from labaudit.attest.statements import BUILDER_ID, SITE_PREDICATE, statement_about
from labaudit.attest.summary import TOOL
from labaudit.core.digest import sha256_hex

SITE_BUNDLE = "site.sigstore.json"
SUBJECT = "index.json"


def site_predicate(runs: Sequence[tuple[str, str]], log_key: str | None) -> Json:
    """`runs` are (run_id, SHA-256 of manifest.json); `log_key` is the text of the log's verifier key."""
    return {
        "builder": {"id": BUILDER_ID, "tool": dict(TOOL)},
        "runs": [{"run_id": run_id, "digest": {"sha256": sha256}} for run_id, sha256 in runs],
        "log_key": log_key,
    }


def site_statement(index: bytes, runs: Sequence[tuple[str, str]], log_key: str | None) -> bytes:
    """The payload that is signed for a site."""
    return statement_about(SUBJECT, sha256_hex(index), SITE_PREDICATE, site_predicate(runs, log_key))


def sign_site(index: bytes, signer: Signer, runs: Sequence[tuple[str, str]], log_key: str | None) -> bytes:
    """The bytes of `site.sigstore.json` for a site with this index.json."""
    return signer.bundle(site_statement(index, runs, log_key))
