"""The parts of `labaudit doctor` beside the engines: schemas, keys and the clock, each as lines with the fix."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable

from labaudit.attest.trust_store import own_keys, readable_by_others, trusted_keys
from labaudit.engines.checks.egress_test import run_egress_test
from labaudit.engines.checks.host_features import host_features
from labaudit.engines.checks.self_check import Check, self_check
from labaudit.engines.protocol import Engine
from labaudit.engines.select import ENGINE_NAMES, select_engine
from labaudit.errors import LabauditError
from labaudit.records import schema_registry
from labaudit.store.lab_folder import LabFolder

_CONFINING = ("docker", "bubblewrap")
_OLDEST_PLAUSIBLE = 1_704_067_200  # 2024-01-01: older than any release of this program
_TIME_ERROR = 5


def examine(
    engine_name: str, lab: LabFolder, *, egress: bool, say: Callable[[str], None]
) -> tuple[list[Check], tuple[str, ...]]:
    """All lines, and the names of the engines that can confine a trial here."""
    checks, usable = list(host_features()), []
    names = _CONFINING if engine_name == "auto" else (engine_name,)
    for name in names:
        say(f"checking {name}")
        found, runs = _engine(name, egress)
        checks += found
        if runs:
            usable.append(name)
    return [*checks, schemas(), *keys(lab), clock()], tuple(usable)


def _engine(name: str, egress: bool) -> tuple[list[Check], bool]:
    assert name in ENGINE_NAMES, "the option allows no other"
    try:
        engine, _ = select_engine(name)
    except LabauditError as error:
        return [Check("engine", name, "missing", error.what, error.hint)], False
    with engine:
        facts = engine.facts()
        version = facts.get("version") or facts.get("kernel")
        checks = [Check("engine", name, "ok" if name in _CONFINING else "degraded", f"version {version}",
                        "" if name in _CONFINING else "it isolates nothing and is graded leaky")]  # fmt: skip
        if name not in _CONFINING:
            return checks, True
        checks += self_check(engine)
        runs = all(check.status != "missing" for check in checks)
        if egress and runs:
            checks += [_egress(engine, "none"), _egress(engine, "allowlist_enforced")]
    return checks, runs


def _egress(engine: Engine, mode: str) -> Check:
    area, name = f"sandbox {engine.name}", f"egress self-test, {mode}"
    try:
        outcome = run_egress_test(engine, mode, store=lambda _: "")  # type: ignore[arg-type]
    except LabauditError as error:
        return Check(area, name, "missing", error.what, error.hint)
    if outcome.passed:
        return Check(area, name, "ok", f"pass: {len(outcome.cases)} cases, seen from both sides")
    fix = "the network is open: do not trust this engine" if outcome.result == "fail" else "repeat it; see the reasons"
    return Check(area, name, "missing" if outcome.result == "fail" else "degraded",
                 f"{outcome.result}: {'; '.join(outcome.reasons[:3])}", fix)  # fmt: skip


def schemas() -> Check:
    """Every schema of the registry can be loaded and compiled."""
    names = schema_registry.schema_names()
    for name in names:
        try:
            schema_registry.fast_validator(name)
        except Exception as error:  # noqa: BLE001, whatever is wrong with a schema is the finding
            return Check("schemas", name, "missing", f"cannot be used: {error}", "install labaudit again")
    return Check("schemas", "registry", "ok", f"{len(names)} schemas")


def keys(lab: LabFolder) -> list[Check]:
    """The signing key of this lab, its file's mode, and what is trusted."""
    try:
        mine, trusted = own_keys(lab), trusted_keys(lab.trust)
    except LabauditError as error:
        return [Check("keys", "signing", "missing", error.what, error.hint)]
    if not mine:
        fix = "the first `labaudit run` makes one, or: labaudit keys new"
        return [Check("keys", "signing", "degraded", f"none in {lab.path}", fix)]
    checks = []
    for key in mine:
        private = key.path.with_suffix(".key")
        if private.exists() and readable_by_others(private):
            checks.append(Check("keys", key.name, "degraded", "readable by others", f"chmod 600 {private}"))
        else:
            checks.append(Check("keys", key.name, "ok", str(key.path)))
    return [*checks, Check("keys", "trusted", "ok", f"{len(trusted)} of others")]


def clock() -> Check:
    """Timestamps go into signed evidence: a clock in the past, or one that nobody sets, is worth a line."""
    now = time.time()
    if now < _OLDEST_PLAUSIBLE:
        return Check("clock", "time", "missing", f"it says {time.strftime('%Y-%m-%d', time.gmtime(now))}", "set it")
    state = _kernel_clock_state()
    if state is None:
        return Check("clock", "time", "degraded", "the kernel does not say whether it is synchronised")
    if state == _TIME_ERROR:
        return Check("clock", "time", "degraded", "not synchronised", "run an NTP client, such as systemd-timesyncd")
    return Check("clock", "time", "ok", "synchronised")


def _kernel_clock_state() -> int | None:
    """What adjtimex(2) answers when it is only asked."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(512)  # struct timex with modes = 0, and room to spare
    if not hasattr(libc, "adjtimex") or os.name != "posix":
        return None
    state = int(libc.adjtimex(buffer))
    return state if state >= 0 else None
