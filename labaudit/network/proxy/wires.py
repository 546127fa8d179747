"""Sockets with deadlines: reading until something is complete, resolving, dialling, copying with a count."""

from __future__ import annotations

import queue
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from .rules import Address, Refused

CHUNK = 1 << 16
Resolve = Callable[[str, int], list[str]]
Answer = queue.SimpleQueue[list[str]]

_LOOKUPS = threading.BoundedSemaphore(32)


class Gone(Exception):
    """The other side ended the connection."""


def read_until(source: socket.socket, seconds: float, data: bytes, complete: Callable[[bytes], bool]) -> bytes:
    """Reads on from `data` until `complete` says so, within `seconds` in all: a drip of bytes buys no time."""
    deadline = time.monotonic() + seconds
    while not complete(data):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        source.settimeout(left)
        more = source.recv(CHUNK)
        if not more:
            raise Gone
        data += more
    return data


def resolve_name(host: str, port: int) -> list[str]:
    """The system's answer, each address once. Bytes keep Python from applying IDNA rules of its own."""
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def resolve_within(resolve: Resolve, host: str, port: int, seconds: float, answer: Answer) -> list[str]:
    """The same with an end: the C library's own patience is longer than a trial's. Whoever puts first, answers."""

    def look_up() -> None:
        # a place is waited for here and not by the caller, who must be able to give up at once
        if not _LOOKUPS.acquire(timeout=seconds):
            return
        try:
            answer.put(resolve(host, port))
        except (OSError, UnicodeError):
            answer.put([])
        finally:
            _LOOKUPS.release()

    threading.Thread(target=look_up, daemon=True).start()
    try:
        return answer.get(timeout=seconds)
    except queue.Empty:
        raise Refused("name_not_resolved", f"{host} was not resolved within {seconds:g} seconds", 504) from None


def dial(
    addresses: Iterable[Address], port: int, seconds: float, show: Callable[[socket.socket], None]
) -> tuple[socket.socket, str]:
    """A connection to the first address that answers; the addresses were checked, and no name is looked up again.

    Each socket is shown before it connects, so that another thread can end the attempt.
    """
    deadline = time.monotonic() + seconds
    why = "no address"
    for address in addresses:
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        upstream = socket.socket(family, socket.SOCK_STREAM)
        show(upstream)
        try:
            upstream.settimeout(max(0.01, deadline - time.monotonic()))
            upstream.connect((str(address), port))
            upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            upstream.close()
            why = f"{address}: {error.strerror or 'timed out'}"
            continue
        return upstream, str(address)
    raise Refused("connect_failed", f"no connection: {why}", 502)


def set_patience(wire: socket.socket, seconds: float) -> None:
    """Blocking calls with a bound that the kernel keeps: cheaper than asking before each of them."""
    wire.settimeout(None)
    bound = struct.pack("ll", int(seconds), int(seconds % 1 * 1_000_000))
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bound)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bound)


class Traffic:
    """Bytes of one connection, counted, and the time of the last one."""

    def __init__(self) -> None:
        self.up = self.down = 0
        self.last = time.monotonic()


def copy(source: socket.socket, sink: socket.socket, count: Callable[[int], None], quiet: Callable[[], bool]) -> None:
    """Copies until the source ends, then ends the sink's side; `quiet` says whether a silence has lasted too long."""
    buffer = bytearray(CHUNK)
    view = memoryview(buffer)
    while True:
        try:
            size = source.recv_into(buffer)
        except (BlockingIOError, InterruptedError):
            if quiet():
                raise TimeoutError from None
            continue
        if not size:
            break
        sink.sendall(view[:size])
        count(size)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def hang_up(*wires: socket.socket | None) -> None:
    """Ends connections for good, from any thread: a blocked read on them returns."""
    for wire in wires:
        if wire is not None:
            with suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)


def linger(wire: socket.socket, seconds: float) -> int:
    """Lets the other side read our last words: says that no more will come, then waits for it to end.

    Gives the number of bytes that still came and were thrown away.
    """
    dropped = 0
    with suppress(OSError):
        wire.shutdown(socket.SHUT_WR)
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            wire.settimeout(left)
            size = len(wire.recv(CHUNK))
            if not size:
                break
            dropped += size
    return dropped
