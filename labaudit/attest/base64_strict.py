"""Base64 text to bytes, only when it re-encodes to itself.

Loose decoders skip stray characters and ignore spare bits, so two texts can carry one signature; here they cannot.
"""

from __future__ import annotations

import base64
import binascii

from labaudit.errors import BadInput


def decode(text: object, *, where: str) -> bytes:
    """The bytes behind standard base64, or BadInput."""
    if not isinstance(text, str):
        raise BadInput("base64 text is needed here", where=where)
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadInput("the base64 is malformed", where=where) from error
    if base64.b64encode(data).decode("ascii") != text:
        raise BadInput("the base64 does not re-encode to itself", where=where)
    return data


def encode(data: bytes) -> str:
    """Standard base64 with padding."""
    return base64.b64encode(data).decode("ascii")
