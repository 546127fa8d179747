"""Digests, ids, time, the chain rule and redaction."""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import quote

import pytest

from labaudit.core import hashchain, ids
from labaudit.core.canonical import canonical_bytes
from labaudit.core.clock import FixedClock, parse_rfc3339, rfc3339
from labaudit.core.digest import Digest, hash_file, hex_of_reference
from labaudit.core.redaction import STREAM_OVERLAP, Redactor, Rule
from labaudit.errors import BadInput

RESOLVED = Digest.of(b"spec")


NO_DIGESTS = ["sha256:" + "A" * 64, "sha256:" + "a" * 63, "sha256:" + "a" * 64 + "\n", "md5:" + "a" * 64, ""]


@pytest.mark.parametrize("text", NO_DIGESTS)
def test_what_is_no_digest_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        Digest.parse(text)


def test_a_digest_knows_its_hex_and_reference(tmp_path) -> None:
    digest = Digest.of(b"abc")
    assert digest.hex == hashlib.sha256(b"abc").hexdigest()
    assert hex_of_reference(digest.reference) == digest.hex
    (tmp_path / "f").write_bytes(b"abc" * 1_000_000)
    assert hash_file(tmp_path / "f") == (hashlib.sha256(b"abc" * 1_000_000).hexdigest(), 3_000_000)
    with pytest.raises(BadInput):
        hex_of_reference("artifact://sha256/../../etc/passwd")


def test_run_and_trial_ids_follow_the_design() -> None:
    started = datetime(2026, 11, 18, 7, 0, 5, tzinfo=UTC)
    assert ids.run_id(started, RESOLVED) == f"run-20261118T070005Z-{RESOLVED.hex[:8]}"
    stamp = hashlib.sha256(canonical_bytes([str(RESOLVED), "v", "t/1", 2])).hexdigest()[:8]
    assert ids.trial_id(RESOLVED, "v", "t/1", 2) == f"v.t_1.r2-{stamp}"
    assert ids.trial_id(RESOLVED, "v", "t/1", 0) != ids.trial_id(RESOLVED, "v", "t_1", 0)


@pytest.mark.parametrize("text", ["..", "", "a/b", "a b", "ü", ".", "x" * 100])
def test_variant_ids_that_could_be_paths_are_refused(text: str) -> None:
    with pytest.raises(BadInput):
        ids.check_variant_id(text)


@pytest.mark.parametrize("text", ["../../x", "", "...", "\u202etxt", "a\nb", "CON:1"])
def test_a_safe_name_is_one_harmless_path_part(text: str) -> None:
    name = ids.safe_name(text)
    assert name
    assert not name.startswith(".")
    assert set(name) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


def test_times_are_utc_with_microseconds() -> None:
    local = datetime(2026, 1, 1, 1, 0, 0, 5, tzinfo=timezone(timedelta(hours=1)))
    assert rfc3339(local) == "2026-01-01T00:00:00.000005Z"
    assert parse_rfc3339("2026-01-01T00:00:00Z") == datetime(2026, 1, 1, tzinfo=UTC)
    clock = FixedClock(local, timedelta(seconds=1))
    assert clock.now() + timedelta(seconds=1) == clock.now()
    for wrong in ("2026-01-01", "2026-01-01T00:00:00", "yesterday", "2026-13-01T00:00:00Z"):
        with pytest.raises(BadInput):
            parse_rfc3339(wrong)


def test_the_chain_rule_is_the_documented_one() -> None:
    event: dict[str, object] = {"attempt": 1, "event_type": "x", "ids": {"run_id": "r"}, "seq": 0}
    prev = hashchain.genesis("r", "t", 1, RESOLVED)
    assert prev == hashlib.sha256(canonical_bytes(["labaudit/events/v1", "r", "t", 1, str(RESOLVED)])).hexdigest()
    line, own = hashchain.link(prev, event)
    assert own == hashlib.sha256(prev.encode() + b"\n" + canonical_bytes(event)).hexdigest()
    assert line == canonical_bytes({**event, "hashchain": {"prev": prev, "self": own}})
    assert hashchain.split(line) == (canonical_bytes(event), prev, own)
    with pytest.raises(BadInput):
        hashchain.split(canonical_bytes(event))


SECRET = "tök/en+with=odd&chars"


@pytest.mark.parametrize("form", [SECRET, quote(SECRET, safe=""), base64.b64encode(SECRET.encode()).decode()])
def test_a_secret_is_withheld_in_its_common_encodings(form: str) -> None:
    redacted = Redactor(secrets={"KEY": SECRET}).apply(f"before {form} after".encode())
    assert form.encode() not in redacted.data
    assert b"[secret KEY withheld]" in redacted.data
    assert redacted.applied


def test_rules_store_hash_and_drop() -> None:
    rules = [Rule.compile("sk-[a-z]+", "hash"), Rule.compile("ssn", "drop"), Rule.compile("note", "store")]
    redacted = Redactor(rules).apply(b"sk-abc ssn note")
    digest = hashlib.sha256(b"sk-abc").hexdigest()
    assert redacted.data == f"[redacted sha256:{digest}] [redacted] note".encode()
    assert redacted.counts == {"rule:0:hash": 1, "rule:1:drop": 1, "rule:2:store": 1}
    assert not Redactor([Rule.compile("note", "store")]).apply(b"note").applied
    with pytest.raises(BadInput):
        Rule.compile("(", "drop")
    with pytest.raises(BadInput):
        Redactor(secrets={"KEY": "ab"})


@pytest.mark.parametrize("size", [1, 7, 4096, STREAM_OVERLAP, 100_000])
def test_a_secret_across_chunks_of_a_stream_is_still_withheld(size: int) -> None:
    data = (b"x" * 20_000 + b"hunter2hunter2" + b"y" * 20_000) * 2
    stream = Redactor(secrets={"KEY": "hunter2hunter2"}).stream()
    kept = b"".join(stream.feed(data[at : at + size]) for at in range(0, len(data), size)) + stream.close()
    assert b"hunter2" not in kept
    assert kept.count(b"[secret KEY withheld]") == 2
    assert len(kept) == len(data) - 2 * len(b"hunter2hunter2") + 2 * len(b"[secret KEY withheld]")
