"""Parameters of an experiment from `--set key=value`: checked, with ranges, before anything is built."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lanikai.hdl.config import ConfigError, Part
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ..errors import UserError
from .base import Experiment

__all__ = ["describe", "parse", "ranges"]


def parse(experiment: Experiment, settings: Iterable[str]) -> Part:
    """The experiment's parameters with `settings` (`key=value` each; value in JSON, or plain text for a
    string).

    Raises UserError: what is wrong, and every valid name with its range.
    """
    valid = describe(experiment.Parameters)
    fields = experiment.Parameters.model_fields
    values: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        key = key.strip()
        if not equals or not key:
            raise UserError(f"--set {setting!r}: not of the form key=value; valid: {valid}")
        if key not in fields:
            raise UserError(
                f"--set {setting!r}: unknown parameter {key!r} of {experiment.name}; valid: {valid}"
            )
        if key in values:
            raise UserError(f"--set {setting!r}: {key!r} is set twice")
        values[key] = _value(fields[key], text)
    missing = [name for name, info in fields.items() if info.is_required() and name not in values]
    if missing:
        raise UserError(f"{experiment.name} needs --set {missing[0]}=VALUE; valid: {valid}")
    try:
        return experiment.Parameters(**values)
    except ConfigError as error:
        text = (
            str(error)
            .removeprefix(f"{experiment.Parameters.__name__}.")
            .removeprefix(f"{experiment.Parameters.__name__}: ")
        )
        raise UserError(f"{experiment.name}: {text}; valid: {valid}") from None


def _value(info: FieldInfo, text: str) -> Any:
    """The value in `text`: as it stands for a string or a path, else JSON; text that is no JSON is left for
    the validation to refuse."""
    if info.annotation in (str, Path) or typing.get_origin(info.annotation) is typing.Literal:
        return text
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return text


def describe(parameters: type[BaseModel]) -> str:
    """Every parameter with its range, in one line: `name (range)`, separated by commas."""
    return ", ".join(f"{name} ({text})" for name, text in ranges(parameters).items())


def ranges(parameters: type[BaseModel]) -> dict[str, str]:
    """The values that each parameter takes, in words, by its name."""
    return {name: _range(info) for name, info in parameters.model_fields.items()}


def _range(info: FieldInfo) -> str:
    """The values that a field takes, in words."""
    extra = info.json_schema_extra
    if isinstance(extra, dict) and "range" in extra:
        return str(extra["range"])
    low = high = None
    for item in info.metadata:
        low = getattr(item, "ge", low)
        high = getattr(item, "le", high)
    if low is not None and high is not None:
        return f"{low} to {high}"
    if typing.get_origin(info.annotation) is typing.Literal:
        return ", ".join(str(choice) for choice in typing.get_args(info.annotation))
    return _type_name(info.annotation)


def _type_name(annotation: Any) -> str:
    if annotation is Path:
        return "path of a file"
    if isinstance(annotation, types.GenericAlias | types.UnionType):
        return str(annotation)
    return getattr(annotation, "__name__", str(annotation))
