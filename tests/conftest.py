"""Turns markers into facts: a test that needs a real part runs against it, or says in one line why it cannot.

A missing part is a skip on a laptop and a failure when CI is set, so that a green build never means "not tried".
Two more rules hold for every test: hypothesis runs under a named profile, and no test reaches a public address.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent
IN_CI = os.environ.get("CI", "").lower() not in ("", "0", "false", "no")

# The caller's lab must not leak into tests, nor the tests' runs into it.
for name in ("LABAUDIT_DIR", "LABAUDIT_TRIAL_INPUT", "NO_COLOR", "FORCE_COLOR"):
    os.environ.pop(name, None)


# --- real parts -------------------------------------------------------------------------------------------------


def runs(*command: str, timeout: float = 20) -> bool:
    """Whether a command ends with exit code 0; a missing program or a hang is a plain no."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def why_no_docker() -> str:
    if shutil.which("docker") is None:
        return "no docker command: run `make test` as root or install docker.io"
    return "" if runs("docker", "info") else "no Docker engine answers `docker info`: start dockerd"


def why_no_bubblewrap() -> str:
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (package bubblewrap)"
    # Installed is not enough: a kernel may forbid user namespaces.
    # Not the whole root: surfaces of sandboxes that other tests make come and go below it.
    shown = [word for name in ("/usr", "/bin", "/lib", "/lib64") for word in ("--ro-bind-try", name, name)]
    sandbox = ("bwrap", "--unshare-all", *shown, "--proc", "/proc", "--dev", "/dev", "/bin/true")
    return "" if runs(*sandbox) else "bwrap is installed but cannot create namespaces here"


def why_no_browser() -> str:
    found = any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return "" if found else "Chromium is not installed (package chromium)"


def why_no_node() -> str:
    if shutil.which("node") is None:
        return "node is not installed (package nodejs)"
    there = (TESTS / "node" / "node_modules").is_dir()
    return "" if there else "the npm packages of tests/node are not installed: run `scripts/setup node`"


PARTS: dict[str, Callable[[], str]] = {
    "docker": functools.cache(why_no_docker),
    "bubblewrap": functools.cache(why_no_bubblewrap),
    "browser": functools.cache(why_no_browser),
    "node": functools.cache(why_no_node),
}


def require_part(marker: str, why_missing: str, *, in_ci: bool) -> None:
    """Lets the test go on, skips it on a laptop, or fails it in CI."""
    if not why_missing:
        return
    if in_ci:
        pytest.fail(f"{marker}: {why_missing} (CI is set, so this is a failure)", pytrace=False)
    pytest.skip(f"{marker}: {why_missing}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, why_missing in PARTS.items():
        if item.get_closest_marker(marker):
            require_part(marker, why_missing(), in_ci=IN_CI)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # One engine serves all Docker tests; two workers on it only wait for each other and share its names.
    for item in items:
        if item.get_closest_marker("docker") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group("docker"))


# --- hypothesis -------------------------------------------------------------------------------------------------

slow_is_fine = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "default", max_examples=50, deadline=None, derandomize=IN_CI, suppress_health_check=slow_is_fine
)
settings.register_profile("acceptance", settings.get_profile("default"), max_examples=1000, print_blob=True)
settings.load_profile(os.environ.get("LABAUDIT_HYPOTHESIS", "default"))


# --- no traffic to the outside ----------------------------------------------------------------------------------


class PublicTraffic(BaseException):
    """A test tried to reach a public address; no `except Exception` in the code under test may hide that."""


def is_public(host: object) -> bool:
    """True for addresses of the open internet; loopback, private and documentation ranges are ours to use."""
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    try:
        return ipaddress.ip_address(text.partition("%")[0]).is_global
    except ValueError:
        return False


def refuse_public_traffic(event: str, arguments: tuple[object, ...]) -> None:
    if event not in ("socket.connect", "socket.sendto"):
        return
    address = arguments[1]
    if isinstance(address, tuple) and address and is_public(address[0]):
        raise PublicTraffic(f"a test tried to reach {address[0]}; tests use loopback and their own containers only")


sys.addaudithook(refuse_public_traffic)


# --- shared fixtures --------------------------------------------------------------------------------------------
# The session-scoped reference run belongs in tests/reference_run.py, named here as a plugin.


@pytest.fixture
def free_port() -> int:
    """A loopback port that nothing listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
