"""Becomes bubblewrap: joins control groups, drops root, makes the network namespace, binds its ports, then execs.

Run as a script with one argument, a marshalled plan in hex; it imports as little as it can, because every trial pays
for its start. With ports, it makes the network namespace itself (bubblewrap then inherits it), binds each port on the
new loopback, and sends the listening sockets to the parent: so the sockets exist before the harness does, and whoever
serves them stands outside.
"""

import marshal
import os
import resource
import sys

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1
PR_SET_DUMPABLE = 4


def main(plan: dict) -> None:  # type: ignore[type-arg]
    if plan["ports"]:
        # now, because the user that this becomes may not be able to read this interpreter's library
        for name in ("array", "ctypes", "fcntl", "socket", "struct"):
            __import__(name)
    for path in plan["join"]:
        write(path, str(os.getpid()))
    for name, value in plan["rlimits"].items():
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (bound, bound))
    if plan["user"] is not None:
        os.setgroups([])
        os.setresgid(*[plan["user"][1]] * 3)
        os.setresuid(*[plan["user"][0]] * 3)
    if plan["ports"]:
        make_network(plan["ports"], plan["channel"])
    # from here on bubblewrap itself dies with the runner; if the runner has gone already, nobody would wait for it
    if os.getppid() != plan["parent"]:
        sys.exit("the runner has gone")
    os.execv(plan["command"][0], plan["command"])  # noqa: S606


def make_network(ports: list, channel: int) -> None:  # type: ignore[type-arg]
    """A user and network namespace of our own with a live loopback; sends one listening socket per port."""
    import array
    import ctypes
    import fcntl
    import socket
    import struct

    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, "unshare: " + os.strerror(number))
    # a change of user makes /proc/self root's; the maps below must be ours to write
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{uid} {uid} 1")
    write("/proc/self/gid_map", f"{gid} {gid} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", b"lo", IFF_UP)
        fcntl.ioctl(control.fileno(), SIOCSIFFLAGS, request)
    listeners = []
    for port in ports:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
        listeners.append(listener)
    descriptors = array.array("i", [listener.fileno() for listener in listeners])
    with socket.socket(fileno=channel) as parent:
        parent.sendmsg([b"ok"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
    for listener in listeners:
        listener.close()


def write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    os.write(descriptor, text.encode())
    os.close(descriptor)


if __name__ == "__main__":
    main(marshal.loads(bytes.fromhex(sys.argv[1])))  # noqa: S302, written by the runner a moment ago
