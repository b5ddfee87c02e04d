"""The words that a shell offers when Tab is pressed (`lanikai --install-completion`)."""

from __future__ import annotations

import typer

__all__ = ["experiment_names", "settings"]


def experiment_names(incomplete: str) -> list[str]:
    """The experiments that can be run and whose names begin so."""
    from ..experiments.registry import EXPERIMENTS

    return [name for name in EXPERIMENTS if name.startswith(incomplete)]


def settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """`KEY=` of each parameter of the experiment on the line, for `--set`; none before it is named."""
    from ..experiments.registry import EXPERIMENTS

    # While the line is not whole the words that could not be parsed stand in `args`.
    named = next((word for word in (ctx.params.get("name"), *ctx.args) if word in EXPERIMENTS), None)
    if named is None:
        return []
    return [f"{key}=" for key in EXPERIMENTS[named].Parameters.model_fields if key.startswith(incomplete)]
