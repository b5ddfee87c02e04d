"""The published numbers: `published.toml`, one table an experiment, copied from the source documents."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["CONSTANTS", "source", "table", "tables"]

CONSTANTS = frozenset({"rtc", "router", "energy"})
"""Tables that hold the constants of a set-up; they have no experiment of their own."""


@cache
def tables() -> Mapping[str, Mapping[str, Any]]:
    """Every table by name, in the file's order."""
    with Path(__file__).with_name("published.toml").open("rb") as file:
        return tomllib.load(file)


def table(name: str) -> Mapping[str, Any]:
    """The table `name`. Raises KeyError if there is none."""
    return tables()[name]


def source(name: str) -> str:
    """The document and place that the table `name` was copied from."""
    return str(table(name)["source"])
