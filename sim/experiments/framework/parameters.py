"""Parameters of an experiment from `--set key=value`: checked, with ranges, before anything is built."""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from lanikai.hdl.config import Config, ConfigError
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from ...errors import UserError
from ...names import hint

__all__ = ["Settable", "parse", "ranges", "shortened"]

ECHO_CHARACTERS = 80
"""Most characters of a wrong value that a message repeats."""


def shortened(text: str) -> str:
    """`text`, cut to the length that a message may repeat."""
    return text if len(text) <= ECHO_CHARACTERS else text[: ECHO_CHARACTERS - 1] + "…"


class Settable(Protocol):
    """A name for messages, and the class of its parameters: an experiment, say."""

    @property
    def name(self) -> str:
        """The name in messages."""

    @property
    def Parameters(self) -> type[Config]:
        """The class of the parameters."""


def parse(experiment: Settable, settings: Iterable[str], grid: Iterable[str] = ()) -> Config:
    """The experiment's parameters with `settings` and one combination of a sweep's `grid`.

    Each setting is `key=value`; the value is in JSON, or plain text for a string. Messages name the option that was
    used. Raises UserError: what is wrong, and what would be right. That is the range of a parameter whose value is
    wrong, and the names of all where a name is.
    """
    valid = ", ".join(experiment.Parameters.model_fields)
    right = ranges(experiment.Parameters)
    fields = experiment.Parameters.model_fields
    values: dict[str, Any] = {}
    listed = [*(("--set", setting) for setting in settings), *(("--grid", setting) for setting in grid)]
    options: dict[str, str] = {}
    for option, setting in listed:
        key, equals, text = setting.partition("=")
        key, setting = key.strip(), shortened(setting)
        if not equals or not key:
            raise UserError(f"{option} {setting!r}: not of the form key=value; valid: {valid}")
        if key not in fields:
            raise UserError(
                f"{option} {setting!r}: unknown parameter {shortened(key)!r} of {experiment.name}"
                f"{hint(key, fields)}; valid: {valid}"
            )
        if key in values:
            before = options[key]
            twice = "set twice" if before == option else f"given by {before} too: give one of them"
            raise UserError(f"{option} {setting!r}: {shortened(key)!r} is {twice}")
        options[key] = option
        try:
            values[key] = _value(fields[key], text)
        except ValidationError as error:
            raise UserError(f"{experiment.name}: {_fault(error, right, key)}") from None
    missing = [name for name, info in fields.items() if info.is_required() and name not in values]
    if missing:
        raise UserError(f"{experiment.name} needs --set {missing[0]}=VALUE: {_words(right[missing[0]])}")
    try:
        return experiment.Parameters(**values)
    except ConfigError as error:
        if isinstance(error.__context__, ValidationError) and _of_a_field(error.__context__):
            raise UserError(f"{experiment.name}: {_fault(error.__context__, right)}") from None
        # A check of the parameters together says itself what would be right.
        name = experiment.Parameters.__name__
        text = str(error).removeprefix(f"{name}.").removeprefix(f"{name}: ")
        raise UserError(f"{experiment.name}: {_LONG.sub(_cut, text)}") from None
    except ArithmeticError:
        # The checks of a module need not think of numbers that overflow when they are multiplied.
        given = ", ".join(f"{key} = {shortened(repr(value))}" for key, value in values.items())
        wanted = "; ".join(f"{key} must be {_words(right[key])}" for key in values)
        raise UserError(f"{experiment.name}: {given}: a number is too large; {wanted}") from None


_LONG = re.compile(
    rf"\[.{{{ECHO_CHARACTERS - 1},}}\]|'[^']{{{ECHO_CHARACTERS - 1},}}'|\S{{{ECHO_CHARACTERS + 1},}}"
)
"""Texts that are too long to repeat: a list, a quoted text, a word."""


def _cut(found: re.Match[str]) -> str:
    text = found[0]
    if text[0] == "[" or "/" not in text:
        return shortened(text)
    # The end of a path tells more than its middle: the file, and the line after it.
    return f"{text[: ECHO_CHARACTERS // 4]}…{text[1 - ECHO_CHARACTERS * 3 // 4 :]}"


def _of_a_field(error: ValidationError) -> bool:
    """Whether the first fault is a value that its field does not take (and not one that a module's check refused)."""
    fault = error.errors()[0]
    return bool(fault["loc"]) and fault["type"] not in ("value_error", "assertion_error")


def _fault(error: ValidationError, right: Mapping[str, str], *key: str) -> str:
    """The first fault of a value, and what the parameter must be. `key` is its name, unless the fault has it."""
    fault = error.errors()[0]
    place = (*key, *fault["loc"])
    where, name = ".".join(map(str, place)), str(place[0])
    what = f"{name} must be" if len(place) > 1 else "must be"
    whole = "a whole number, " if fault["type"].startswith("int_") and right[name][:1].isdigit() else ""
    written = fault.get("input")
    # A shell takes the quotes off a list: what is left is a text.
    json_too = (
        ", in JSON, its texts in double quotes" if isinstance(written, str) and written[:1] == "[" else ""
    )
    return f"{where} = {shortened(repr(written))}: {what} {whole}{_words(right[name])}{json_too}"


def _words(values: str) -> str:
    """A range as it stands in a sentence."""
    return f"a {values}" if values.startswith("list of ") else values


def _value(info: FieldInfo, text: str) -> Any:
    """The value in `text`. For a string or a path it is the text as it stands. Else it is JSON of exactly the field's
    types (no `true` or `"2"` for a number).

    Text that is no JSON is left for the validation to refuse. Raises ValidationError.
    """
    if info.annotation in (str, Path) or typing.get_origin(info.annotation) is typing.Literal:
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    try:
        kind: Any = info.annotation
        TypeAdapter(kind).validate_json(text, strict=True)
    except ValidationError as error:
        # JSON that only Python reads (numbers of any length) is for the validation that follows.
        if error.errors()[0]["type"] != "json_invalid":
            raise
    return value


def ranges(parameters: type[BaseModel]) -> dict[str, str]:
    """The values that each parameter takes, in words, by its name."""
    return {name: _range(info) for name, info in parameters.model_fields.items()}


def _range(info: FieldInfo) -> str:
    """The values that a field takes, in words."""
    extra = info.json_schema_extra
    if isinstance(extra, dict) and "range" in extra:
        return _counted(str(extra["range"]), info)
    low = high = above = below = None
    for item in info.metadata:
        low, above = getattr(item, "ge", low), getattr(item, "gt", above)
        high, below = getattr(item, "le", high), getattr(item, "lt", below)
    if above is not None or below is not None:
        ends = (
            ("above {}", above),
            ("at least {}", low),
            ("below {}", below),
            ("at most {}", high),
        )
        return ", ".join(text.format(end) for text, end in ends if end is not None)
    if low is not None and high is not None:
        return f"{low} to {high}"
    if low is not None:
        return f"{low} or more"
    if typing.get_origin(info.annotation) is typing.Literal:
        return "one of " + ", ".join(str(choice) for choice in typing.get_args(info.annotation))
    return _type_name(info.annotation)


def _counted(text: str, info: FieldInfo) -> str:
    """`text` with the list's lengths, if it begins "list of"."""
    low, high = (
        next((getattr(item, name) for item in info.metadata if hasattr(item, name)), None)
        for name in ("min_length", "max_length")
    )
    if not text.startswith("list of ") or low is None or high is None or text[8:9].isdigit():
        return text
    return f"list of {low} to {high} {text.removeprefix('list of ')}"


def _type_name(annotation: Any) -> str:
    if annotation is Path:
        return "path of a file"
    if annotation is bool:
        return "true or false"
    if annotation == bool | None:
        return "true, false or null"
    if typing.get_origin(annotation) in (tuple, list):
        plural = {int: "whole numbers", float: "numbers", str: "names"}
        items = [plural[one] for one in typing.get_args(annotation) if one in plural]
        return f"list of {items[0] if items else 'values'}"
    if isinstance(annotation, types.GenericAlias | types.UnionType):
        return str(annotation)
    if annotation in (str, int, float):
        return {str: "a name", int: "a whole number", float: "a number"}[annotation]
    return getattr(annotation, "__name__", str(annotation))
