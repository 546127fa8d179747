"""Allowed names that lead inside, end to end: the internet, with its name server, is a namespace of the test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from labaudit.engines.bubblewrap.engine import BubblewrapEngine

pytestmark = [
    pytest.mark.bubblewrap,
    pytest.mark.skipif(os.geteuid() != 0, reason="a name server on port 53 of a namespace needs root"),
]
TOP = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with BubblewrapEngine.detect() as engine:
        engine.resolve_image(None)  # built or found before there is no network at all
    folder = tmp_path_factory.mktemp("etc")
    (folder / "resolv.conf").write_text("nameserver 127.0.0.1\noptions attempts:1 timeout:2\n")
    (folder / "hosts").write_text("127.0.0.1 localhost\n")
    (folder / "nsswitch.conf").write_text("hosts: files dns\n")
    mounts = "; ".join(f"mount --bind {folder / name} /etc/{name}" for name in ("resolv.conf", "hosts"))
    # nsswitch.conf may not be there at all, which means the same as ours
    mounts += f"; if [ -e /etc/nsswitch.conf ]; then mount --bind {folder}/nsswitch.conf /etc/nsswitch.conf; fi"
    script = f"set -e; {mounts}; ip link set lo up; exec \"$@\""
    done = subprocess.run(
        ["unshare", "-nm", "sh", "-c", script, "sh", sys.executable, "-m", "tests.bubblewrap.namespace_internet"],
        capture_output=True, cwd=TOP, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def rules(seen: dict[str, Any], name: str) -> list[str | None]:
    return [value["rule"] for key, value in seen["told"].items() if key.split()[1] == name]


def test_a_name_that_leads_where_the_policy_allows_is_reached(seen: dict[str, Any]) -> None:
    assert rules(seen, "open.test") == [None]
    assert seen["told"]["0 open.test"]["status"] == 200
    assert "open.test" in seen["arrived"]


@pytest.mark.parametrize(
    "name",
    ["b47-loopback", "b47-six", "b48-metadata", "b48-link-local", "b49-cgnat", "b49-nat64", "b49-6to4", "b25-mapped",
     "private", "b50-mixed"],
)  # fmt: skip
def test_b47_to_b50_a_name_that_leads_inside_is_refused_and_nothing_arrives(seen: dict[str, Any], name: str) -> None:
    host = f"{name}.test"
    assert rules(seen, host) == ["address_not_allowed"]
    [event] = [event for event in seen["events"] if event["host"] == host]
    assert (event["decision"], event["address"]) == ("block", None)
    assert host not in seen["arrived"]


def test_b50_an_answer_that_changes_is_checked_anew_and_each_connection_asks_once(seen: dict[str, Any]) -> None:
    assert rules(seen, "b50-rebinding.test") == [None, "address_not_allowed"]
    assert seen["asked"]["b50-rebinding.test"] == 2
    assert seen["arrived"].count("b50-rebinding.test") == 1


def test_a_name_without_an_address_is_told_apart(seen: dict[str, Any]) -> None:
    assert rules(seen, "nothing.test") == ["name_not_resolved"]
