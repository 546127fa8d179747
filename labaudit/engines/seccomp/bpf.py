"""The rules as a classic BPF program, for bubblewrap's --seccomp and for prctl.

wrong architecture        kill
x32 entry points          EPERM
plain allowed numbers     allow (as ranges)
conditional calls         allow if the argument passes, else EPERM
missing calls             ENOSYS
the rest                  EPERM
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterable

from labaudit.engines.seccomp.numbers import ARCHITECTURES
from labaudit.engines.seccomp.rules import ALLOWED, CONDITIONAL, ENOSYS, EPERM, MISSING, Condition
from labaudit.errors import EnvironmentLacks

LOAD, AND, RETURN = 0x20, 0x54, 0x06
JUMP_EQ, JUMP_GE, JUMP_GT, JUMP = 0x15, 0x35, 0x25, 0x05
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCH, _ARGS = 0, 4, 16
_X32 = 0x40000000

Instruction = tuple[int, int, int, int]


def bpf_program(machine: str | None = None) -> bytes:
    """The filter for this machine as an array of sock_filter. EnvironmentLacks on an unknown architecture."""
    name = machine or platform.machine()
    if name not in ARCHITECTURES:
        raise EnvironmentLacks(f"no seccomp filter for {name}", hint="use the docker engine on this machine")
    arch, numbers = ARCHITECTURES[name]
    program: list[Instruction] = [
        (LOAD, 0, 0, _ARCH),
        (JUMP_EQ, 1, 0, arch),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, _NUMBER),
        (JUMP_GE, 0, 1, _X32),
        (RETURN, 0, 0, ERRNO | EPERM),
    ]
    for first, last in ranges(numbers[call] for call in ALLOWED if call in numbers):
        program += [(JUMP_GE, 0, 2, first), (JUMP_GT, 1, 0, last), (RETURN, 0, 0, ALLOW)]
    for condition in CONDITIONAL:
        if condition.name in numbers:
            body = _condition(condition)
            program += [(JUMP_EQ, 0, len(body), numbers[condition.name]), *body]
    for call in MISSING:
        program += [(JUMP_EQ, 0, 1, numbers[call]), (RETURN, 0, 0, ERRNO | ENOSYS)]
    program.append((RETURN, 0, 0, ERRNO | EPERM))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Numbers as sorted, inclusive ranges: few comparisons for many calls."""
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def _condition(condition: Condition) -> list[Instruction]:
    """The argument's test. Both halves count: the kernel may ignore the upper one, the filter must not."""
    low, high = _ARGS + 8 * condition.argument, _ARGS + 8 * condition.argument + 4
    deny: Instruction = (RETURN, 0, 0, ERRNO | EPERM)
    allow: Instruction = (RETURN, 0, 0, ALLOW)
    if condition.test == "no_bit_of":
        return [(LOAD, 0, 0, low), (AND, 0, 0, condition.values[0]), (JUMP_EQ, 1, 0, 0), deny, allow]
    body: list[Instruction] = [(LOAD, 0, 0, high), (JUMP_EQ, 1, 0, 0), deny, (LOAD, 0, 0, low)]
    for value in condition.values:
        body += [(JUMP_EQ, 0, 1, value), allow]
    return [*body, deny]
