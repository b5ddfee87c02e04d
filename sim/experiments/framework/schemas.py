"""JSON schemas of files and parameters: networks, results, and the parameters of each experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...names import unknown
from ...network_files.json_format import NetworkObject
from .base import Experiment

__all__ = ["SCHEMAS", "schema_of"]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_OBJECT: dict[str, Any] = {"type": "object"}
_NUMBER = {"type": "number", "minimum": 0}
_WHOLE = {"type": "integer"}
_TEXT = {"type": "string"}


def _object(required: Mapping[str, Any], **optional: Any) -> dict[str, Any]:
    """An object with these keys; others may come in later versions."""
    return {"type": "object", "properties": {**required, **optional}, "required": list(required)}


def _maybe(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [dict(schema), {"type": "null"}]}


def _described(schema: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {**schema, "description": text}


def _network() -> dict[str, Any]:
    return NetworkObject.model_json_schema()


def _results() -> dict[str, Any]:
    """The schema of what `Report.as_json` returns."""
    run = {"seed": _WHOLE, "cycles": _WHOLE, "results": _OBJECT}
    point = _object(
        {
            "parameters": _described(_OBJECT, "set-up of the point"),
            "results": _described(_OBJECT, "measured values by name"),
            "published": _described(_maybe(_OBJECT), "values that the source has, by name"),
            "tolerance": _described(_maybe(_OBJECT), "relative error allowed for each published value"),
            "within": _described(_maybe({"type": "boolean"}), "whether all published values are met"),
            "seed": _WHOLE,
            "cycles": _described(_WHOLE, "cycles simulated"),
        },
        intervals=_described(_OBJECT, "with --seeds: half the 95% interval of each mean"),
        repetitions=_described({"type": "array", "items": _object(run)}, "with --seeds: each run"),
    )
    claim = _object({"text": _TEXT, "holds": {"type": "boolean"}})
    return _object(
        {
            "experiment": _TEXT,
            "size": {"enum": ["quick", "full"]},
            "seed": _WHOLE,
            "parameters": _described(_OBJECT, "parameters of the run"),
            "command": _described(_TEXT, "the command that repeats it"),
            "versions": {"type": "object", "additionalProperties": _TEXT},
            "cycles": _described(_WHOLE, "cycles simulated by all points"),
            "wall_seconds": _NUMBER,
            "cycles_per_second": _NUMBER,
            "build_seconds": _NUMBER,
            "build_cached": {"type": "boolean"},
            "points": {"type": "array", "items": point},
            "claims": _described({"type": "array", "items": claim}, "claims that were judged"),
            "claims_not_judged": {"type": "array", "items": _object({"text": _TEXT, "why": _TEXT})},
            "failures": {"type": "array", "items": _object({"point": _TEXT, "why": _TEXT})},
            "notes": _described({"type": "array", "items": _TEXT}, "things that one would not expect"),
            "files": _described(_OBJECT, "files of the run"),
        }
    )


SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {"network": _network, "results": _results}
"""The schemas that are none of an experiment: a new one is a function and a line here."""


def schema_of(name: str, experiments: Mapping[str, Experiment]) -> dict[str, Any]:
    """The schema `name`: one of `SCHEMAS`, or that of the parameters of an experiment. Raises UserError."""
    if make := SCHEMAS.get(name):
        found = {**make(), "title": f"lanikai {name}"}
    elif name in experiments:
        found = experiments[name].Parameters.model_json_schema()
        found["title"] = f"parameters of {name}"
    else:
        raise unknown("schema", name, [*SCHEMAS, *experiments])
    return {"$schema": DRAFT, **found}
