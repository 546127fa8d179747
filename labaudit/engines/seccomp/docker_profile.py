"""The rules as Docker's seccomp JSON; run as a module it prints policies/seccomp.json."""

from __future__ import annotations

import json
import sys
from functools import cache

from labaudit.engines.seccomp.rules import ALLOWED, CONDITIONAL, ENOSYS, EPERM, MISSING, Condition


def docker_profile() -> dict[str, object]:
    """The profile, in the form that Docker's and Podman's `seccomp=` option reads."""
    rules: list[dict[str, object]] = [{"names": ALLOWED, "action": "SCMP_ACT_ALLOW"}]
    for condition in CONDITIONAL:
        rules += [
            {"names": [condition.name], "action": "SCMP_ACT_ALLOW", "args": [comparison]}
            for comparison in _comparisons(condition)
        ]
    rules.append({"names": list(MISSING), "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS})
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": EPERM,
        # no sub-architectures: 32-bit entry points have call numbers of their own and would need a list of their own
        "archMap": [
            {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
        ],
        "syscalls": rules,
    }


def _comparisons(condition: Condition) -> list[dict[str, object]]:
    if condition.test == "no_bit_of":
        mask = condition.values[0]
        return [{"index": condition.argument, "value": mask, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]
    return [{"index": condition.argument, "value": value, "op": "SCMP_CMP_EQ"} for value in condition.values]


@cache
def rendered() -> str:
    """The text of policies/seccomp.json."""
    return json.dumps(docker_profile(), indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(rendered())
