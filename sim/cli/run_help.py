"""The help of a command on experiments: with an experiment's name, its parameters too."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from typer.core import TyperCommand

__all__ = ["ExperimentCommand", "WordsCommand", "plain", "words", "write_settings"]

_WORDS = "lanikai.words"


class WordsCommand(TyperCommand):
    """A command whose help may look at the words of its line (`words`)."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the words of the line: `--help` is carried out before the name is known."""
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, args)


def words(ctx: Any) -> tuple[str, ...]:
    """The words of the line of a `WordsCommand`."""
    found: tuple[str, ...] = ctx.meta.get(_WORDS, ())
    return found


class ExperimentCommand(WordsCommand):
    """A command whose help tells of the experiment that is named beside `--help`.

    `lanikai run NAME --help` ends with the question that the experiment asks, its source, the published set-up, and
    each parameter with its values and its default.
    """

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the experiment's part below the options."""
        from ..experiments.registry import EXPERIMENTS

        super().format_epilog(ctx, formatter)
        name = next((word for word in words(ctx) if word in EXPERIMENTS), None)
        if name is not None:
            _write(formatter, name)


def _write(formatter: Any, name: str) -> None:
    from ..experiments.framework.parameters import ranges
    from ..experiments.registry import EXPERIMENTS
    from ..published import table, tables

    experiment = EXPERIMENTS[name]
    setup = table(name).get("setup") if name in tables() else None
    with formatter.section(name):
        formatter.write_text(experiment.asks)
        formatter.write_paragraph()
        formatter.write_text(f"Source: {experiment.source}")
        if setup is not None:
            formatter.write_text(f"Published set-up: {plain(setup)}")
    values, fields = ranges(experiment.Parameters), experiment.Parameters.model_fields
    if not fields:
        formatter.write_paragraph()
        formatter.write_text(f"{name} has no parameters.")
        return
    rows = [
        (
            key,
            str(field.description),
            values[key],
            "required" if field.is_required() else f"default: {plain(field.default)}",
        )
        for key, field in fields.items()
    ]
    write_settings(formatter, "Parameters (--set KEY=VALUE)", rows)


def write_settings(formatter: Any, heading: str, rows: Iterable[tuple[str, str, str, str]]) -> None:
    """Write a section of what `--set` takes: name, meaning, values, and the default or that there is none."""
    with formatter.section(heading):
        formatter.write_dl(
            [(key, f"{what}: {values}  [{default}]") for key, what, values, default in rows], col_max=24
        )


def plain(value: Any) -> str:
    """A value as it stands after `--set KEY=`. A table of the published values is a line of `key = value`."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {plain(one)}" for key, one in value.items())
    return value if isinstance(value, str) else json.dumps(value, default=str)
