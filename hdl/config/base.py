"""The base of every configuration: a frozen, validated model whose errors are one line."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

__all__ = ["Config", "ConfigError", "one_line"]


class ConfigError(ValueError):
    """A configuration that cannot be built. The message is one line: part, key, what is wrong, what is right."""


class Config(BaseModel):
    """Base of every configuration: frozen, keyword-only, unknown keys refused, errors of one line."""

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(one_line(error, type(self))) from None

    def replace(self, **changes: Any) -> Self:
        """A copy with `changes`, validated as a new one is. Raises ConfigError."""
        return type(self)(**{name: getattr(self, name) for name in type(self).model_fields} | changes)


def one_line(error: ValidationError, part: type[BaseModel]) -> str:
    """The first fault of a pydantic error in one line; an unknown key is answered with the valid ones."""
    fault = error.errors()[0]
    key = ".".join(str(step) for step in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"{part.__name__}: unknown key {key!r}; valid keys: {', '.join(part.model_fields)}"
    message = fault["msg"].removeprefix("Value error, ")
    if not key:
        return f"{part.__name__}: {message}"
    return f"{part.__name__}.{key} = {fault.get('input')!r}: {_must_be(fault['type'], message, key, part)}"


def _must_be(kind: str, message: str, key: str, part: type[BaseModel]) -> str:
    """Say what a value must be: both bounds where one is broken, else pydantic's own words."""
    if key in part.model_fields and kind in ("greater_than", "greater_than_equal", "less_than_equal"):
        bounds: dict[str, Any] = {}
        for item in part.model_fields[key].metadata:
            bounds |= {name: getattr(item, name) for name in ("gt", "ge", "le") if hasattr(item, name)}
        if {"ge", "le"} <= bounds.keys():
            return f"must be {bounds['ge']} to {bounds['le']}"
        if {"gt", "le"} <= bounds.keys():
            return f"must be above {bounds['gt']} and at most {bounds['le']}"
    return message.replace("Input should be ", "must be ", 1)
