"""The loopback server: safe headers, never beyond its folder, and no answer under a name that can be registered."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator

import pytest

from labaudit.errors import BadInput
from labaudit.site.server import SiteServer, is_local_name


@pytest.fixture(scope="module")
def server(site) -> Iterator[SiteServer]:
    with SiteServer(site.path) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield running
        running.shutdown()


def ask(server: SiteServer, path: str, *, method: str = "GET", host: str | None = None) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", host or "localhost")
    connection.endheaders()
    response = connection.getresponse()
    response.body = response.read()  # type: ignore[attr-defined]
    connection.close()
    return response


def test_a_page_comes_with_the_headers_of_a_published_site(server):
    response = ask(server, "/")
    assert response.status == 200
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path", ["/../conftest.py", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd", "/trials/%00"]
)
def test_nothing_beyond_the_folder_is_served(server, path):
    assert ask(server, path).status == 404


def test_a_link_inside_the_folder_is_not_followed(tmp_path):
    (tmp_path / "index.html").write_text("x")
    (tmp_path / "out").symlink_to("/etc/passwd")
    with SiteServer(tmp_path) as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        assert ask(running, "/out").status == 404
        running.shutdown()


def test_only_reading_is_possible(server):
    assert ask(server, "/", method="POST").status == 501
    assert ask(server, "/", method="HEAD").status == 200


def test_a_missing_page_is_the_sites_own(server):
    response = ask(server, "/nothing.html")
    assert response.status == 404
    assert b"There is no such page" in response.body  # type: ignore[attr-defined]


def test_a_name_that_can_be_registered_gets_no_answer(server):
    assert ask(server, "/", host="evil.example.com:80").status == 421


@pytest.mark.parametrize(
    ("host", "local"),
    [("localhost:8000", True), ("127.0.0.1", True), ("[::1]:80", True), ("site.test", True), ("a.localhost:1", True),
     ("localhost.evil.com", False), ("test.com", False), ("10.0.0.1", False), ("", False)],
)  # fmt: skip
def test_local_names(host, local):
    assert is_local_name(host) is local


def test_an_address_that_others_can_reach_is_refused(site):
    with pytest.raises(BadInput):
        SiteServer(site.path, host="0.0.0.0")


def test_a_folder_without_a_site_is_refused(tmp_path):
    with pytest.raises(BadInput):
        SiteServer(tmp_path)
