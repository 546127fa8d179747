"""The bytes of an A2A packet to its fields as they were sent, before anything is substituted.

The order of the checks is part of the contract: byte cap, raw bytes kept, parse, depth and array caps, protocol,
version. A field counts as sent only when it has the JSON type that the contract gives it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from labaudit.contracts.a2a.errors import AdapterError
from labaudit.contracts.a2a.version import check_version
from labaudit.contracts.json_reading import Unreadable, deeper_than, longer_array_than, read_json

PROTOCOL = "a2a"
MEDIA_TYPE = "application/json"
KNOWN_KEYS = frozenset(
    ["protocol", "version", "event_type", "timestamp", "agent", "task", "artifact", "message", "attributes"]
)


@dataclass(frozen=True, slots=True)
class Options:
    """How to convert: strict or lenient, the caps (None is unlimited), and a version for packets without one."""

    mode: Literal["strict", "lenient"] = "strict"
    max_payload_bytes: int | None = None
    max_json_depth: int | None = None
    max_array_length: int | None = None
    version_hint: str | None = None

    def __post_init__(self) -> None:
        if self.mode not in ("strict", "lenient"):
            raise AdapterError("config", f"mode is {self.mode!r}", hint="say strict or lenient")
        for name in ("max_payload_bytes", "max_json_depth", "max_array_length"):
            cap = getattr(self, name)
            if cap is not None and (isinstance(cap, bool) or not isinstance(cap, int) or cap < 0):
                raise AdapterError("config", f"{name} is {cap!r}", hint="a cap is a whole number, 0 or more")
        if self.version_hint is not None and not isinstance(self.version_hint, str):
            raise AdapterError("config", f"version_hint is {self.version_hint!r}", hint="a hint is text such as 0.2")


@dataclass(frozen=True, slots=True)
class RawPayload:
    """Where the exact bytes of a packet are kept, or would be: their digest, size and media type."""

    sha256: str
    size: int
    media_type: str = MEDIA_TYPE
    artifact_ref: str | None = None

    def as_json(self) -> dict[str, object]:
        """The reference as the event carries it."""
        reference = {"sha256": self.sha256, "size": self.size, "media_type": self.media_type}
        return reference if self.artifact_ref is None else {**reference, "artifact_ref": self.artifact_ref}


RawWriter = Callable[[bytes], RawPayload]


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet whose protocol and version are supported: its object, its version, and where its bytes are."""

    fields: dict[str, object]
    version: str
    raw: RawPayload
    duplicate_keys: tuple[str, ...]

    def text(self, key: str) -> str | None:
        """The string at a top-level key, else None."""
        value = self.fields.get(key)
        return value if isinstance(value, str) else None

    def part(self, key: str) -> dict[str, object]:
        """The object at a top-level key; empty when another type stands there."""
        value = self.fields.get(key)
        return value if isinstance(value, dict) else {}


def name_raw_bytes(data: bytes) -> RawPayload:
    """The reference to raw bytes that are kept elsewhere."""
    return RawPayload(sha256(data).hexdigest(), len(data))


def read_packet(data: bytes, options: Options, keep_raw: RawWriter = name_raw_bytes) -> Packet:
    """The packet in `data`, or AdapterError; the raw bytes are kept even when they cannot be parsed."""
    cap = options.max_payload_bytes
    if cap is not None and len(data) > cap:
        raise AdapterError("measurement", f"payload exceeds max_payload_bytes ({cap})")
    raw = keep_raw(data)
    try:
        reading = read_json(data)
    except Unreadable as error:
        raise AdapterError("measurement", f"the packet {error.reason}", is_json=error.is_json) from error
    _check_shape(reading.value, options)
    fields = reading.value
    if not isinstance(fields, dict):
        raise AdapterError("measurement", "a packet is a JSON object", hint="JSON Lines are read with --jsonl")
    if fields.get("protocol") != PROTOCOL:
        raise AdapterError("measurement", f"protocol must be {PROTOCOL!r}")
    return Packet(fields, check_version(fields.get("version"), options.version_hint), raw, reading.duplicate_keys)


def _check_shape(value: object, options: Options) -> None:
    if options.max_json_depth is not None and deeper_than(value, options.max_json_depth):
        raise AdapterError("measurement", f"payload exceeds max_json_depth ({options.max_json_depth})")
    if options.max_array_length is not None and longer_array_than(value, options.max_array_length):
        raise AdapterError("measurement", f"payload exceeds max_array_length ({options.max_array_length})")
