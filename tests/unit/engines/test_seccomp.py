"""One source of rules, two filters: both are run here on every call and must answer alike."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labaudit.engines.seccomp.bpf import bpf_program
from labaudit.engines.seccomp.docker_profile import docker_profile, rendered
from labaudit.engines.seccomp.numbers import AARCH64, ARCHITECTURES, X86_64
from labaudit.engines.seccomp.rules import ALLOWED, CONDITIONAL, FAMILIES, NAMESPACE_FLAGS
from labaudit.errors import EnvironmentLacks
from labaudit.resources import policy_path

ALLOW, EPERM, ENOSYS, KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000


def decide(number: int, arguments: tuple[int, ...] = (), *, arch: int = 0xC000003E, machine: str = "x86_64") -> int:
    """What the kernel would do: a small interpreter of classic BPF over seccomp_data."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, arch, 0, *words)
    program = decoded(machine)
    accumulator, position = 0, 0
    while True:
        code, yes, no, value = program[position]
        position += 1
        if code == 0x20:
            accumulator = struct.unpack_from("=I", data, value)[0]
        elif code == 0x54:
            accumulator &= value
        elif code == 0x05:
            position += value
        elif code == 0x06:
            return int(value)
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x25: accumulator > value}[code]
            position += yes if holds else no


@cache
def decoded(machine: str) -> list[tuple[int, int, int, int]]:
    raw = bpf_program(machine)
    return [struct.unpack_from("=HBBI", raw, at) for at in range(0, len(raw), 8)]


@cache
def rules_by_name() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for rule in docker_profile()["syscalls"]:  # type: ignore[attr-defined]
        for name in rule["names"]:
            found.setdefault(name, []).append(rule)
    return found


def docker_decides(name: str, arguments: tuple[int, ...]) -> int:
    """What libseccomp would make of the profile."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    for rule in rules_by_name().get(name, ()):
        if all(_holds(test, words) for test in rule.get("args", ())):
            return ALLOW if rule["action"] == "SCMP_ACT_ALLOW" else 0x00050000 | rule["errnoRet"]
    return EPERM


def _holds(test: dict[str, int | str], words: list[int]) -> bool:
    word, value = words[int(test["index"])], int(test["value"])
    return word & value == test["valueTwo"] if test["op"] == "SCMP_CMP_MASKED_EQ" else word == value


@pytest.mark.parametrize(("machine", "numbers"), [("x86_64", X86_64), ("aarch64", AARCH64)])
def test_both_filters_answer_alike_for_every_call(machine: str, numbers: dict[str, int]) -> None:
    arch = ARCHITECTURES[machine][0]
    for name, number in numbers.items():
        assert decide(number, (1,), arch=arch, machine=machine) == docker_decides(name, (1,)), name


@given(st.sampled_from(CONDITIONAL), st.one_of(st.integers(0, 64), st.integers(0, 2**64 - 1)))
def test_both_filters_answer_alike_for_every_argument(condition: object, word: int) -> None:
    name = condition.name  # type: ignore[attr-defined]
    words = (0,) * condition.argument + (word,)  # type: ignore[attr-defined]
    if condition.test == "no_bit_of":  # type: ignore[attr-defined]
        word &= 0xFFFFFFFF  # the flags of clone are 32 bits wide
        words = (word,)
    assert decide(X86_64[name], words) == docker_decides(name, words)


@pytest.mark.parametrize(
    "name",
    ["ptrace", "mount", "umount2", "unshare", "setns", "pivot_root", "chroot", "io_uring_setup", "io_uring_enter",
     "bpf", "perf_event_open", "keyctl", "add_key", "open_by_handle_at", "process_vm_readv", "process_vm_writev",
     "userfaultfd", "kexec_load", "init_module", "finit_module", "reboot", "swapon", "pidfd_getfd", "move_mount",
     "fsopen", "open_tree", "fanotify_init", "iopl", "quotactl", "settimeofday", "clock_settime", "syslog", "kcmp"],
)  # fmt: skip
def test_what_reaches_beyond_the_sandbox_is_refused(name: str) -> None:
    assert decide(X86_64[name]) == EPERM
    assert name not in ALLOWED


@given(st.integers(0, 2**32 - 1))
def test_only_four_socket_families_pass(family: int) -> None:
    assert (decide(X86_64["socket"], (family,)) == ALLOW) == (family in FAMILIES)


def test_the_upper_half_of_a_family_does_not_hide_another() -> None:
    assert decide(X86_64["socket"], (2 | 1 << 32,)) == EPERM


@given(st.integers(0, 2**32 - 1))
def test_clone_makes_no_namespace(flags: int) -> None:
    assert (decide(X86_64["clone"], (flags,)) == ALLOW) == (flags & NAMESPACE_FLAGS == 0)


def test_clone3_is_unknown_so_that_libraries_fall_back() -> None:
    assert decide(X86_64["clone3"]) == ENOSYS


def test_another_architecture_is_killed_and_x32_refused() -> None:
    assert decide(X86_64["read"], arch=0x40000003) == KILL
    assert decide(X86_64["read"] | 0x40000000) == EPERM


def test_the_published_profile_is_what_the_source_says() -> None:
    assert policy_path("seccomp.json").read_text() == rendered()


def test_an_architecture_without_numbers_is_a_clear_error() -> None:
    with pytest.raises(EnvironmentLacks, match="riscv64"):
        bpf_program("riscv64")
