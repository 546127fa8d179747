"""What all records share: strict and frozen, read from JSON, written to JSON.

    TrialOutput.from_bytes(data, where="trials/x/trial_output.json")   bytes of a file
    TrialOutput.from_json(value, where=...)                            a parsed JSON value
    TrialOutput(ids=ids, outcome="success")                            in code
    record.to_json(), record.to_bytes()                                back, canonical

In code, a key that may be left out is None when it is out; in JSON it is left out, and a null in its place is an error,
because absent and null are two answers. A key that the schema allows to be null is written as null. A default other
than None (`schema_version`) spares code the typing; a document must carry the key.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError

from labaudit.core.canonical import canonical_bytes
from labaudit.core.strict_json import parse_json
from labaudit.errors import BadInput
from labaudit.records.finding import Finding, json_path

# The validation context of values that come from a file; told apart by identity.
FROM_JSON: dict[str, bool] = {"from_json": True}


class _NullIsAValue:
    """Marks a key that may be left out, may be null, and means two things by it."""


NULL_IS_A_VALUE = _NullIsAValue()


class Record(BaseModel):
    """A frozen, strict value whose shape a schema fixes."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        populate_by_name=True,
        serialize_by_alias=True,
        defer_build=True,
    )

    _absent_as_none: ClassVar[frozenset[str]] = frozenset()
    _optional_nulls: ClassVar[tuple[tuple[str, str], ...]] = ()
    _must_be_written: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        optional = {name: field for name, field in cls.model_fields.items() if not field.is_required()}
        nulls = {name for name, field in optional.items() if any(m is NULL_IS_A_VALUE for m in field.metadata)}
        cls._optional_nulls = tuple((name, optional[name].alias or name) for name in nulls)
        cls._absent_as_none = frozenset(
            field.alias or name for name, field in optional.items() if field.default is None and name not in nulls
        )
        cls._must_be_written = frozenset(
            field.alias or name for name, field in optional.items() if field.default is not None
        )

    @model_validator(mode="before")
    @classmethod
    def _json_says_what_code_may_leave_out(cls, data: Any, info: ValidationInfo) -> Any:
        if info.context is FROM_JSON and isinstance(data, dict):
            for key in cls._absent_as_none:
                if key in data and data[key] is None:
                    raise PydanticCustomError("null", "{key} is null; leave the key out instead", {"key": key})
            for key in cls._must_be_written:
                if key not in data:
                    raise PydanticCustomError("missing", "{key} is missing", {"key": key})
        return data

    @model_serializer(mode="wrap")
    def _leave_out_what_is_absent(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = handler(self)
        for key in self._absent_as_none:
            if values.get(key, key) is None:
                del values[key]
        for name, key in self._optional_nulls:
            if name not in self.model_fields_set:
                values.pop(key, None)
        return values

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """The record of a parsed JSON value; pydantic's own error when it does not fit."""
        options.setdefault("context", FROM_JSON)
        return super().model_validate(obj, **options)

    @classmethod
    def from_json(cls, value: object, *, where: str = "") -> Self:
        """The record of a parsed JSON value, or BadInput naming file and place."""
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            raise refusal(error, where=where) from error

    @classmethod
    def from_bytes(cls, data: bytes, *, where: str = "", max_bytes: int | None = None) -> Self:
        """The record of a file's bytes, or BadInput naming file and place."""
        return cls.from_json(parse_json(data, where=where, max_bytes=max_bytes), where=where)

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object: lists, dicts, text and numbers only."""
        return self.model_dump(mode="json")

    def to_bytes(self) -> bytes:
        """The record as canonical JSON, byte for byte what its file holds."""
        return canonical_bytes(self.to_json())


def findings_of(error: ValidationError) -> list[Finding]:
    """A pydantic error as findings."""
    return [
        Finding(json_path(item["loc"]), item["msg"].removeprefix("Value error, "), item["type"])
        for item in error.errors(include_url=False, include_input=False)
    ]


def refusal(error: ValidationError, *, where: str) -> BadInput:
    """A pydantic error as the error that a user sees: the first finding, and how many more there are."""
    found = findings_of(error)
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return BadInput(f"{first.path}: {first.message}{more}", where=where)
