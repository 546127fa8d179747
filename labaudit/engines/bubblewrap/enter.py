"""Runs one more command inside a running sandbox: enters its namespaces, takes on its confinement, then execs.

A script with one JSON plan on a descriptor. Standard library only, single-threaded (setns into a user namespace
demands that). A sandbox stands in a chain of user namespaces, and each of its other namespaces belongs to one of them:
so the chain is walked from the outside, and at each link whatever belongs to it is entered.
"""

import ctypes
import fcntl
import json
import os
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_CAPBSET_DROP = 38, 22, 24
NS_GET_USERNS, NS_GET_PARENT = 0xB701, 0xB702
CLONE_NEWUSER = 0x10000000
# the mounts last: /proc is needed until then
KINDS = (("cgroup", 0x02000000), ("ipc", 0x08000000), ("uts", 0x04000000), ("net", 0x40000000), ("pid", 0x20000000),
         ("mnt", 0x00020000))  # fmt: skip


class Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_void_p))


def main(plan: dict) -> int:  # type: ignore[type-arg]
    libc = ctypes.CDLL(None, use_errno=True)
    for path in plan["join"]:
        descriptor = os.open(path, os.O_WRONLY)
        os.write(descriptor, str(os.getpid()).encode())
        os.close(descriptor)
    users = chain(plan["pid"])
    levels = grouped(plan["pid"], users)
    if plan["user"] is not None:
        os.setgroups([])
        os.setresgid(*[plan["user"][1]] * 3)
        os.setresuid(*[plan["user"][0]] * 3)
    for number, spaces in enumerate(levels):
        if number > 0:
            check(libc.setns(users[number - 1], CLONE_NEWUSER), "setns user")
        for kind, flag, descriptor in spaces:
            check(libc.setns(descriptor, flag), f"setns {kind}")
    child = os.fork()
    if child == 0:
        confine(libc, bytes.fromhex(plan["seccomp"]))
        os.chdir(plan["workdir"])
        become(plan["argv"], plan["env"])
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def chain(pid: int) -> list:  # type: ignore[type-arg]
    """Descriptors of the user namespaces between ours and the sandbox's, from the outside in."""
    here = os.stat("/proc/self/ns/user").st_ino  # noqa: PTH116, pathlib would double the start
    found: list[int] = []
    current = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)
    while os.fstat(current).st_ino != here:
        found.insert(0, current)
        current = fcntl.ioctl(current, NS_GET_PARENT)
    return found


def grouped(pid: int, users: list) -> list:  # type: ignore[type-arg]
    """The other namespaces that differ from ours, by the link of the chain that owns them (0: our own)."""
    places = {os.fstat(user).st_ino: number for number, user in enumerate(users, 1)}
    levels: list[list[tuple[str, int, int]]] = [[] for _ in range(len(users) + 1)]
    for kind, flag in KINDS:
        descriptor = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
        if os.fstat(descriptor).st_ino != os.stat(f"/proc/self/ns/{kind}").st_ino:  # noqa: PTH116
            owner = fcntl.ioctl(descriptor, NS_GET_USERNS)
            levels[places.get(os.fstat(owner).st_ino, 0)].append((kind, flag, descriptor))
    return levels


def become(argv: list, env: dict) -> None:  # type: ignore[type-arg]
    """Execs the command. By hand: os.execvpe imports modules, and the library's files are out of sight now."""
    folders = [""] if "/" in argv[0] else [folder + "/" for folder in env["PATH"].split(":")]
    for folder in folders:
        try:
            os.execve(folder + argv[0], argv, env)  # noqa: S606
        except OSError:
            continue
    os.write(2, f"{argv[0]}: not found\n".encode())
    os._exit(127)


def confine(libc: ctypes.CDLL, program: bytes) -> None:
    """No capabilities to be had, no new privileges, the same filter."""
    os.setsid()
    for number in range(64):
        if libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0:
            break
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    buffer = ctypes.create_string_buffer(program, len(program))
    rules = Filter(len(program) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    check(libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(rules), 0, 0), "seccomp")


def check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    with os.fdopen(int(sys.argv[1]), "rb") as source:
        given = json.loads(source.read())
    code = main(given)
    sys.exit(code if code >= 0 else 128 - code)
