"""Control groups for engines without a daemon: memory, CPU and process limits, freezing, and kill counts.

Works on version 1 and version 2 hierarchies, as root or where a folder was delegated. Where no group can be made the
caller gets the reason and records the limits as unenforced.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from labaudit.engines.host.ownership import Owner, this_process
from labaudit.engines.observed import NotObserved, ObservedLimits
from labaudit.engines.spec import Limits

ROOT = Path("/sys/fs/cgroup")
PREFIX = "labaudit-"
CONTROLLERS = ("memory", "pids", "cpu", "freezer")


@dataclass
class ControlGroup:
    """One sandbox's group: a folder per controller (version 1) or a single one (version 2)."""

    folders: dict[str, Path]
    version: int
    problems: dict[str, str] = field(default_factory=dict)
    """Limit name -> why it could not be set."""

    @property
    def joins(self) -> list[str]:
        """Files into which a process writes its id to join."""
        return sorted({str(folder / "cgroup.procs") for folder in self.folders.values()})

    def processes(self) -> list[int]:
        """Ids of all processes in the group."""
        found: set[int] = set()
        for join in self.joins:
            with suppress(OSError):
                found.update(int(line) for line in Path(join).read_text().split())
        return sorted(found)

    def oom_kills(self) -> int | None:
        """How many processes of this group the kernel killed for memory."""
        folder = self.folders.get("memory")
        if folder is None:
            return None
        for name in ("memory.events", "memory.oom_control"):
            with suppress(OSError, ValueError):
                facts = dict(line.split() for line in (folder / name).read_text().splitlines())
                if "oom_kill" in facts:
                    return int(facts["oom_kill"])
        return None

    def freeze(self, frozen: bool) -> bool:
        """Stops or continues every process; False where the group has no freezer."""
        folder = self.folders.get("freezer")
        if folder is None:
            return False
        name, value, wanted = ("cgroup.freeze", "1" if frozen else "0", f"frozen {int(frozen)}")
        if self.version == 1:
            name, value = "freezer.state", "FROZEN" if frozen else "THAWED"
            wanted = value
        (folder / name).write_text(value)
        state = folder / ("cgroup.events" if self.version == 2 else name)
        for _ in range(500):
            if wanted in state.read_text():
                return True
            time.sleep(0.002)
        return False

    def limits(self) -> ObservedLimits:
        """What the kernel says is set, read back from the group's own files."""
        return ObservedLimits(
            memory_bytes=self._number("memory.max", "memory.limit_in_bytes", "memory"),
            cpus=self._cpus(),
            pids=self._number("pids.max", "pids.max", "pids"),
        )

    def _number(self, v2: str, v1: str, controller: str) -> int | NotObserved | None:
        text = self._read(controller, v2 if self.version == 2 else v1)
        if isinstance(text, NotObserved):
            return text
        return int(text) if text.isdigit() and int(text) < 1 << 60 else None

    def _cpus(self) -> float | NotObserved | None:
        if self.version == 2:
            text = self._read("cpu", "cpu.max")
            if isinstance(text, NotObserved):
                return text
            quota, period = text.split()
        else:
            first, second = self._read("cpu", "cpu.cfs_quota_us"), self._read("cpu", "cpu.cfs_period_us")
            if isinstance(first, NotObserved) or isinstance(second, NotObserved):
                return NotObserved("no cpu controller could be read")
            quota, period = first, second
        return int(quota) / int(period) if quota.isdigit() else None

    def _read(self, controller: str, name: str) -> str | NotObserved:
        folder = self.folders.get(controller)
        if folder is None:
            return NotObserved(f"the kernel offers no {controller} controller here")
        try:
            return (folder / name).read_text().strip()
        except OSError as error:
            return NotObserved(f"{name} could not be read: {error.strerror}")

    def remove(self) -> None:
        """Deletes the group; its processes must be gone (a short wait covers the kernel's own delay)."""
        for folder in set(self.folders.values()):
            for _ in range(200):
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.005)
                else:
                    break


def create_group(name: str, limits: Limits) -> ControlGroup | str:
    """A group with these limits, or the reason why there is none."""
    version = 2 if (ROOT / "cgroup.controllers").exists() else 1
    # the owner's name is part of the group's: an empty group may belong to a runner that is just about to use it
    full = f"{PREFIX}{name}.{this_process()}"
    group = _create_v2(full) if version == 2 else _create_v1(full)
    if isinstance(group, str):
        return group
    _set(group, "memory_mb", "memory", ("memory.max", "memory.limit_in_bytes"), str(limits.memory_mb << 20))
    with suppress(OSError):  # no swap beyond the limit, where the kernel accounts for swap
        folder = group.folders.get("memory")
        if folder is not None:
            swap = (
                ("memory.swap.max", "0")
                if version == 2
                else ("memory.memsw.limit_in_bytes", str(limits.memory_mb << 20))
            )
            (folder / swap[0]).write_text(swap[1])
    _set(group, "pids", "pids", ("pids.max", "pids.max"), str(limits.pids))
    quota = int(limits.cpus * 100_000)
    if version == 2:
        _set(group, "cpus", "cpu", ("cpu.max", ""), f"{quota} 100000")
    else:
        _set(group, "cpus", "cpu", ("", "cpu.cfs_quota_us"), str(quota))
    return group


def leftover_groups() -> list[ControlGroup]:
    """Groups whose runner is dead."""
    version = 2 if (ROOT / "cgroup.controllers").exists() else 1
    found: dict[str, dict[str, Path]] = {}
    for controller in CONTROLLERS:
        parent = _parent(controller, version)
        for folder in parent.glob(f"{PREFIX}*") if parent else []:
            owner = Owner.parse(folder.name.partition(".")[2])
            if owner is not None and owner.is_dead():
                found.setdefault(folder.name, {})[controller] = folder
    return [ControlGroup(folders, version) for folders in found.values()]


def _create_v1(name: str) -> ControlGroup | str:
    folders, reason = {}, "no version 1 hierarchy is mounted"
    for controller in CONTROLLERS:
        parent = _parent(controller, 1)
        if parent is None:
            continue
        try:
            (parent / name).mkdir()
            folders[controller] = parent / name
        except OSError as error:
            reason = f"no control group could be made: {error.strerror}"
    return ControlGroup(folders, 1) if folders else reason


def _create_v2(name: str) -> ControlGroup | str:
    parent = _parent("memory", 2)
    if parent is None:
        return "no control group could be made: the hierarchy is not writable"
    folder = parent / name
    try:
        folder.mkdir()
    except OSError as error:
        return f"no control group could be made: {error.strerror}"
    there = (folder / "cgroup.controllers").read_text().split()
    folders: dict[str, Path] = {name: folder for name in ("memory", "pids", "cpu") if name in there}
    return ControlGroup({**folders, "freezer": folder}, 2)


def _parent(controller: str, version: int) -> Path | None:
    """The folder in which new groups are made."""
    if version == 1:
        folder = ROOT / controller / _own_path(controller).lstrip("/")
        return folder if folder.is_dir() else (ROOT / controller if (ROOT / controller).is_dir() else None)
    # a group with processes of its own may not hand out controllers, so ours hang below a sibling that has none
    parent = ROOT / "labaudit"
    try:
        parent.mkdir(exist_ok=True)
        for folder in (ROOT, parent):
            for name in ("memory", "pids", "cpu"):
                with suppress(OSError):
                    (folder / "cgroup.subtree_control").write_text(f"+{name}")
    except OSError:
        return None
    return parent if os.access(parent, os.W_OK) else None


def _own_path(controller: str) -> str:
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, names, path = line.split(":", 2)
            if controller in names.split(","):
                return path
    return "/"


def _set(group: ControlGroup, limit: str, controller: str, names: tuple[str, str], value: str) -> None:
    folder = group.folders.get(controller)
    if folder is None:
        group.problems[limit] = f"the kernel offers no {controller} controller here"
        return
    try:
        (folder / names[0 if group.version == 2 else 1]).write_text(value)
    except OSError as error:
        group.problems[limit] = f"{controller} limit could not be set: {error.strerror}"
