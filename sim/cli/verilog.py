"""`lanikai verilog`: a block as Verilog, with what others need to use it, in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["verilog"]


def verilog(
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help="Block: router, nic, network, rate-control, ...")
    ],
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder to write: a new or an empty one.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter; may be given again.")
    ] = None,
    clock_mhz: Annotated[
        float | None,
        typer.Option(
            "--clock-mhz",
            metavar="MHZ",
            min=0.001,
            max=10_000,
            help="Clock in the constraints (by itself: the card's own, or 100).",
        ),
    ] = None,
) -> None:
    """Write a block as readable Verilog, with a file list, constraints (SDC), and its registers.

    Registers are there as SystemRDL, a C header and IP-XACT; they need PeakRDL, which pip installs (the extra
    `export`). The same parameters give the same bytes. Exit status: 0 done; 2 wrong input; 3 a tool is missing.
    """
    from rich.console import Console

    from ..errors import UserError
    from ..export.blocks import configure_export
    from ..export.export import export

    if not out.strip():
        raise UserError(f"--out {out!r}: give the name of a folder")
    config = configure_export(what, settings or [])
    clock_hz = None if clock_mhz is None else round(clock_mhz * 1e6)
    files = export(what, config, Path(out), settings=settings or [], clock_hz=clock_hz)
    console = Console(highlight=False)
    console.print(f"{what}: {len(files)} files in {out}", markup=False, soft_wrap=True)
    for name in files:
        if not name.endswith(".v"):
            console.print(f"  {name}", markup=False)
