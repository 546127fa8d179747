"""verify.html in a real browser: three states, never a green default, and the same event as the command line."""

from __future__ import annotations

import http.server
import re
import shutil
import threading
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import expect

from labaudit.attest.keys import PrivateKey
from tests.browser.conftest import uri

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="session")
def trial(site) -> str:
    """A trial that completed."""
    return next(path.stem for path in sorted((site.path / "trials").iterdir()) if ".p" not in path.name)


@pytest.fixture(scope="session")
def address(site, trial) -> str:
    page = (site.path / "trials" / f"{trial}.html").read_text("utf-8")
    return "verify.html#" + page.split("verify.html#")[1].split('"')[0]


def states(page) -> dict[str, str]:
    page.wait_for_selector("#answer:not([hidden])")
    rows = page.locator("#results tr")
    return {row.locator("th").inner_text(): row.locator(".state").inner_text() for row in rows.all()}


def overall(page) -> str:
    page.wait_for_selector("#answer:not([hidden])")
    return str(page.locator("#overall").inner_text())


def test_before_anything_is_given_nothing_is_green(opened, site):
    page = opened(uri(site.path, "verify.html")).page
    assert page.locator("#status").inner_text() == "Nothing has been checked yet."
    assert not page.locator("#answer").is_visible()


def test_a_trial_is_verified_from_its_page_with_a_key_that_the_reader_gives(opened, site, trial, made):
    watched = opened(uri(site.path, f"trials/{trial}.html"))
    page = watched.page
    page.click("text=Check it in your browser")
    assert overall(page) == "not checked"
    page.set_input_files("#keyfile", str(made.lab.public_key))
    expect(page.locator("#overall")).to_have_text("verified")
    assert set(states(page).values()) == {"verified"}
    assert made.signing.public.keyid in page.locator("#results").inner_text()
    assert "labaudit verify" in page.locator("#command").inner_text()
    assert watched.quiet()


def test_without_a_key_the_page_says_whose_word_it_is(opened, site, address):
    page = opened(uri(site.path, address)).page
    found = states(page)
    assert found["event chain"] == found["place in the run tree"] == "verified"
    assert found["signature"] == "not checked"
    assert "which this site supplied" in page.locator("#results").inner_text()
    assert overall(page) == "not checked"


def test_another_key_fails(opened, site, address):
    page = opened(uri(site.path, address)).page
    states(page)
    page.fill("#key", PrivateKey.generate().public.pem)
    page.click("#check")
    expect(page.locator("#overall")).to_have_text("FAILED")
    assert states(page)["signature"] == "FAILED"


def test_a_flipped_byte_is_named_at_its_event(opened, site, trial, address, made, tmp_path):
    forged = tmp_path / "site"
    shutil.copytree(site.path, forged)
    shard = forged / address.split("#")[1].split(":")[0]
    data = shard.read_bytes()
    line = made.run.trial(trial).events.read_bytes().split(b"\n")[4]
    own = line.split(b'"self":"')[1][:64]
    # The first time this hash stands there it is the event's own; the second time it is the next one's `prev`.
    place = data.index(own) + 10
    data = data[:place] + (b"0" if data[place : place + 1] != b"0" else b"1") + data[place + 1 :]
    shard.write_bytes(data)
    page = opened(uri(forged, address)).page
    page.fill("#key", made.signing.public.pem)
    page.click("#check")
    assert overall(page) == "FAILED"
    assert states(page)["event chain"] == "FAILED"
    assert "broken at event 4" in page.locator("#results").inner_text()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


def test_on_plain_http_under_another_name_signatures_are_not_checked(opened, site, address, made):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site.path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        watched = opened(f"http://site.test:{server.server_address[1]}/{address}")
        page = watched.page
        assert page.evaluate("window.isSecureContext") is False
        page.fill("#key", made.signing.public.pem)
        page.click("#check")
        found = states(page)
        assert found["event chain"] == found["place in the run tree"] == "verified"
        assert found["signature"] == found["checkpoint"] == "not checked"
        assert overall(page) == "not checked"
        assert "plain http" in page.locator("#secure").inner_text()
        assert watched.quiet()
    finally:
        server.shutdown()
        server.server_close()


def test_over_http_on_localhost_signatures_are_checked(opened, server, address, made):
    page = opened(server.address + address).page
    page.fill("#key", made.signing.public.pem)
    page.click("#check")
    expect(page.locator("#overall")).to_have_text("verified")


def test_a_whole_bundle_a_proof_and_a_data_file_can_be_given(opened, site, made, trial):
    page = opened(uri(site.path, "verify.html")).page
    page.fill("#key", made.signing.public.pem)
    page.set_input_files("#file", str(next((site.path / "downloads").iterdir())))
    expect(page.locator("#overall")).to_have_text("verified", timeout=60_000)
    assert "40 trials" in page.locator("#results").inner_text()
    page.set_input_files("#file", str(made.run.proof(trial)))
    expect(page.locator("#target")).to_contain_text("Proof of")
    assert states(page)["signature"] == "verified"
    page.set_input_files("#file", str(site.path / "data" / "check-000.js"))
    expect(page.locator("#target")).to_have_text(re.compile("^Trial "))
    assert overall(page) == "verified"


def test_a_bundle_with_one_changed_byte_fails(opened, site, made, tmp_path):
    data = bytearray(next((site.path / "downloads").iterdir()).read_bytes())
    place = data.index(b'"event_type":"harness.output"') + 20
    data[place] ^= 1
    changed = tmp_path / "changed.zip"
    changed.write_bytes(bytes(data))
    page = opened(uri(site.path, "verify.html")).page
    page.set_input_files("#file", str(changed))
    assert overall(page) == "FAILED"


@pytest.mark.parametrize(
    "anchor",
    [
        "../../etc/passwd:x",
        "https://evil.example/x.js:t",
        "data/check-000.js:nothing",
        "data/check-999.js:t",
        "data/x.js:t",
    ],
)
def test_an_address_that_names_no_evidence_checks_nothing(opened, site, anchor):
    watched = opened(uri(site.path, f"verify.html#{anchor}"))
    watched.page.wait_for_timeout(300)
    assert not watched.page.locator("#answer").is_visible()
    assert watched.foreign == []


def test_a_file_that_is_no_evidence_says_so(opened, site, tmp_path: Path):
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    page = opened(uri(site.path, "verify.html")).page
    page.set_input_files("#file", str(tmp_path / "photo.png"))
    expect(page.locator("#status")).to_contain_text("This is no bundle")
