"""`lanikai schema`: the JSON schema of what the program reads or writes."""

from __future__ import annotations

import json
from typing import Annotated

import typer

__all__ = ["schema"]


def schema(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="network, results, or an experiment for its parameters.")
    ] = "",
) -> None:
    """Print a JSON schema (draft 2020-12) to standard output; without NAME, the names that there are.

    `network` is that of a network file, `results` that of results.json, and the name of an experiment that of its
    parameters. Exit status: 0 done; 2 an unknown name.
    """
    from ..experiments.framework.schemas import SCHEMAS, schema_of
    from ..experiments.registry import EXPERIMENTS

    if not name:
        typer.echo("\n".join([*SCHEMAS, *EXPERIMENTS]))
    else:
        typer.echo(json.dumps(schema_of(name, EXPERIMENTS), indent=2, ensure_ascii=False))
