"""The help of a command on experiments: with an experiment's name, its parameters too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from typer.core import TyperCommand

__all__ = ["ExperimentCommand"]

_WORDS = "lanikai.words"


class ExperimentCommand(TyperCommand):
    """A command whose help tells of the experiment that is named beside `--help`.

    `lanikai run NAME --help` ends with the question that the experiment asks, its source, the published set-up, and
    each parameter with its values and its default.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the words of the line: `--help` is carried out before the name is known."""
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the experiment's part below the options."""
        from ..experiments.registry import EXPERIMENTS

        super().format_epilog(ctx, formatter)
        name = next((word for word in ctx.meta.get(_WORDS, ()) if word in EXPERIMENTS), None)
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
            formatter.write_text(f"Published set-up: {_plain(setup)}")
    values, fields = ranges(experiment.Parameters), experiment.Parameters.model_fields
    if not fields:
        formatter.write_paragraph()
        formatter.write_text(f"{name} has no parameters.")
        return
    with formatter.section("Parameters (--set KEY=VALUE)"):
        formatter.write_dl(
            [
                (
                    key,
                    f"{field.description}: {values[key]}  "
                    + ("[required]" if field.is_required() else f"[default: {_plain(field.default)}]"),
                )
                for key, field in fields.items()
            ],
            col_max=24,
        )


def _plain(value: Any) -> str:
    """A value as it stands after `--set KEY=`. A table of the published values is a line of `key = value`."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {_plain(one)}" for key, one in value.items())
    return value if isinstance(value, str) else json.dumps(value, default=str)
