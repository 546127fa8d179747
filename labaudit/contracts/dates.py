"""Text to a moment, by RFC 3339 section 5.6: full date, full time, and an offset."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = _EPOCH.toordinal()


class Moment(NamedTuple):
    """A point in time: whole seconds since 1970 in UTC and nanoseconds; moments compare in time order."""

    seconds: int
    nanoseconds: int
    leap: bool = False


def parse_moment(text: object) -> Moment | None:
    """The moment that an RFC 3339 text names, else None. A leap second counts as the first moment after it."""
    if not isinstance(text, str):
        return None
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, sign, off_hour, off_minute = match.groups()
    leap = second == "60"
    # RFC 3339 section 5.7: a leap second ends a UTC hour, so its minute is 59 whatever whole-hour offset is used.
    if leap and minute != "59" and off_minute in (None, "00"):
        return None
    try:
        day_start = date(int(year), int(month), int(day))
    except ValueError:
        return None
    seconds = (day_start.toordinal() - _EPOCH_DAY) * 86400 + int(hour) * 3600 + int(minute) * 60 + int(second)
    if sign:
        offset = int(off_hour) * 3600 + int(off_minute) * 60
        seconds -= offset if sign == "+" else -offset
    return Moment(seconds, int((fraction or "0")[:9].ljust(9, "0")), leap)


def utc_text(moment: Moment) -> str | None:
    """`2026-02-27T10:05:00Z`, with 3, 6 or 9 digits of a second where they are needed; None outside years 1-9999."""
    try:
        whole = _EPOCH + timedelta(seconds=moment.seconds)
    except OverflowError:
        return None
    digits = f"{moment.nanoseconds:09d}"
    while len(digits) and digits.endswith("000"):
        digits = digits[:-3]
    fraction = f".{digits}" if digits else ""
    return f"{whole:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + fraction + "Z"
