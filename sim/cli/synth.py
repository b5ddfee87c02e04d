"""`lanikai synth`: what the user gave, checked; the synthesis; the report shown."""

from __future__ import annotations

from typing import Annotated

import typer

from .json_file import JsonFile, check_json, write_json

__all__ = ["synth"]


def synth(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="Block: router, nic, rate-control, ...")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter; may be given again.")
    ] = None,
    report: Annotated[
        bool,
        typer.Option(
            "--report", help="Report area and clock; of `nic` also those of its blocks, each alone."
        ),
    ] = False,
    area_only: Annotated[
        bool, typer.Option("--area-only", help="Area alone: no placement, so no clock frequency.")
    ] = False,
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, max=100, help="Placements, with seeds 1 to N.")
    ] = 3,
    board: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Place it for this board's device, clock and pins: ulx3s-85f."),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Synthesize a block for ECP5, out of context or on a board: area, clock frequency, critical path.

    Needs Yosys and nextpnr, which pip installs (the extra `fpga`). The same parameters and seeds give the same
    report. Exit status: 0 done; 2 wrong input; 3 a tool is missing; 130 interrupted.
    """
    from lanikai.hdl.config import aim
    from rich.console import Console

    from ..errors import UserError
    from ..synth import synthesize as tools
    from ..synth.blocks import configure
    from ..synth.card_report import card_blocks
    from .synth_display import SynthesisProgress, show

    config = configure(what, settings or [])
    check_json(json_file)
    if board is not None and area_only:
        raise UserError(f"--board {board}: --area-only places nothing; leave out one of the two")
    numbers = [] if area_only else list(range(1, seeds + 1))
    console = Console(stderr=json_file == "-")
    more = card_blocks(what, config) if report else []
    count = tools.steps(numbers) + sum(tools.steps(numbers if block.clock else []) for block in more)
    with SynthesisProgress(console, what, count) as progress:
        found = tools.synthesize(what, config, seeds=numbers, progress=progress.step, board=board)
        found = tools.synthesize_blocks(
            found, more, seeds=numbers, progress=progress.step, target=aim(config) if report else None
        )
    write_json(json_file, found.json_text())
    show(console, found)
