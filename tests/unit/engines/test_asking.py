"""Choosing an engine, and what is asked of it: pure parts, checked as values."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from labaudit.engines.bubblewrap.command import Descriptors, bubblewrap_command
from labaudit.engines.bubblewrap.command import Places as BubblewrapPlaces
from labaudit.engines.docker.account import account
from labaudit.engines.docker.creation import Places, trial_container
from labaudit.engines.docker.sidecar import names_of_host
from labaudit.engines.host.ownership import Owner, start_time, this_process
from labaudit.engines.host.staging import Staging
from labaudit.engines.running.ports import forwarded_ports
from labaudit.engines.select import select_engine
from labaudit.engines.spec import LoopbackService, NetworkSpec, ReadOnlyMount, SandboxLabels, SandboxSpec
from labaudit.errors import BadInput, EnvironmentLacks

SPEC = SandboxSpec("sha256:0", ("python3", "x.py"), SandboxLabels("run", "trial", 2), env={"KEY": "s3cret"})


def body(spec: SandboxSpec = SPEC, joined: str | None = None) -> dict[str, Any]:
    names = ("in", "out", "workspace", "state")
    mounts = tuple((mount.source, mount.target) for mount in spec.read_only)
    places = Places({name: Path("/run/x", name) for name in names}, mounts, (65532, 65532))
    return trial_container(spec, places, {"l": "1"}, joined=joined)


def test_an_unknown_engine_names_the_known_ones() -> None:
    with pytest.raises(BadInput, match="podmann") as caught:
        select_engine("podmann")
    assert "bubblewrap" in caught.value.hint


def test_where_nothing_runs_the_error_says_why_for_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentLacks) as caught:
        select_engine("auto")
    assert "docker:" in caught.value.hint
    assert "bubblewrap is not installed" in caught.value.hint
    assert caught.value.exit_code == 4


def test_every_container_is_asked_to_be_confined() -> None:
    made = body()
    host = made["HostConfig"]
    assert (host["ReadonlyRootfs"], host["CapDrop"], host["Privileged"]) == (True, ["ALL"], False)
    assert "no-new-privileges:true" in host["SecurityOpt"]
    assert host["NetworkMode"] == "none"
    assert (host["Memory"], host["MemorySwap"]) == (512 << 20, 512 << 20)
    assert made["User"] == "65532:65532"
    assert {mount["Target"]: mount["ReadOnly"] for mount in host["Mounts"]} == {
        "/in": True, "/out": False, "/workspace": False, "/state": False,
    }  # fmt: skip


def test_a_joined_namespace_brings_its_own_name_and_resolver() -> None:
    made = body(replace(SPEC, network=NetworkSpec("allowlist_enforced", ("a.example",))), joined="abc")
    assert made["HostConfig"]["NetworkMode"] == "container:abc"
    assert "Dns" not in made["HostConfig"]
    assert "Hostname" not in made
    assert "HTTPS_PROXY=http://127.0.0.1:3128" in made["Env"]


def test_a_mount_in_the_place_of_a_surface_replaces_it_read_only() -> None:
    mounts = body(replace(SPEC, read_only=(ReadOnlyMount(Path("/kept"), "/out", "out"),)))["HostConfig"]["Mounts"]
    assert [(m["Source"], m["ReadOnly"]) for m in mounts if m["Target"] == "/out"] == [("/kept", True)]


def test_the_account_of_a_container_has_no_environment_and_no_host_paths() -> None:
    config = {"Env": ["KEY=s3cret"], "User": "1"}
    inspected = {"HostConfig": body()["HostConfig"], "Config": config, "Image": "sha256:0"}
    text = str(account({"engine": "docker"}, inspected))
    assert "s3cret" not in text
    assert "/run/x" not in text
    assert "seccomp=sha256:" in text


def test_bubblewrap_shows_the_image_and_never_the_host(tmp_path: Path) -> None:
    for name in ("usr", "etc", "proc", "tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin").symlink_to("usr/bin")
    places = BubblewrapPlaces("bwrap", tmp_path, {"in": Path("/s/in"), "out": Path("/s/out")}, (), Path("/s/etc"))
    words = bubblewrap_command(SPEC, places, Descriptors(3, 4), {}, own_network=False, share_network=False)
    text = " ".join(words)
    binds = [words[at + 1] for at, word in enumerate(words) if word in ("--bind", "--ro-bind")]
    assert all(path.startswith((str(tmp_path), "/s/")) for path in binds)
    assert f"--ro-bind {tmp_path}/proc" not in text
    assert "--symlink usr/bin /bin" in text
    assert {"--unshare-net", "--unshare-pid", "--unshare-user", "--die-with-parent", "--clearenv"} <= set(words)
    shared = bubblewrap_command(SPEC, places, Descriptors(3, 4), {}, own_network=False, share_network=True)
    assert "--unshare-net" not in shared


def test_two_services_on_one_port_or_on_a_shared_network_are_refused(tmp_path: Path) -> None:
    services = (LoopbackService("a", 4318, tmp_path / "a"), LoopbackService("b", 4318, tmp_path / "b"))
    with pytest.raises(BadInput, match="same port"):
        forwarded_ports(replace(SPEC, services=services))
    listed = NetworkSpec("allowlist_enforced", ("a.example",))
    with pytest.raises(BadInput, match="same port"):
        forwarded_ports(replace(SPEC, network=listed, services=(LoopbackService("a", 3128, tmp_path / "a"),)))
    with pytest.raises(BadInput, match="network of its own"):
        forwarded_ports(replace(SPEC, network=NetworkSpec("full"), services=services[:1]))


def test_names_of_this_machine_go_to_a_sidecar_only_where_they_are_allowed(tmp_path: Path) -> None:
    table = tmp_path / "hosts"
    table.write_text("127.0.0.1 localhost\n10.0.0.5 Model.Lan other # model2.lan\nfd00::1 model.lan\n\nbroken\n")
    assert names_of_host(["model.lan", "localhost"], table) == ("model.lan:10.0.0.5", "model.lan:fd00::1")
    assert names_of_host(["model.lan"], tmp_path / "none") == ()


def test_an_owner_is_dead_only_if_this_machine_can_tell() -> None:
    me = this_process()
    assert Owner.parse(str(me)) == me
    assert not me.is_dead()
    assert replace(me, started=me.started + 1).is_dead()  # the number was used again
    assert replace(me, boot="another").is_dead()
    assert not replace(me, machine="elsewhere", pid=1 << 22).is_dead()
    assert Owner.parse("a.b.c.d") is None
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    began = start_time(child.pid)
    child.wait()
    assert began is None or replace(me, pid=child.pid, started=began).is_dead()


def test_a_zombie_counts_as_dead() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert start_time(child) is None
    os.waitpid(child, 0)


def test_what_is_staged_is_frozen_and_readable_by_all(tmp_path: Path) -> None:
    source = tmp_path / "harness"
    source.mkdir(mode=0o700)
    (source / "agent.py").write_text("one")
    (source / "agent.py").chmod(0o700)
    os.mkfifo(source / "pipe")
    staging = Staging()
    try:
        staged = staging.readable(source)
        (source / "agent.py").write_text("two")
        assert (staging.readable(source) / "agent.py").read_text() == "one"
        assert (staged / "agent.py").stat().st_mode & 0o777 == 0o755
        assert not (staged / "pipe").exists()
        staging.forget(source)
        assert (staging.readable(source) / "agent.py").read_text() == "two"
    finally:
        staging.close()
    assert not staged.exists()


def test_a_source_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No such file"):
        Staging().readable(tmp_path / "none")
