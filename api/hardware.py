"""The RTL from Python: blocks as Verilog, and their area and clock on an FPGA."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import plain

if TYPE_CHECKING:
    import polars

__all__ = ["synthesize", "verilog"]


@plain
def verilog(what: str, out: str | Path, *, clock_mhz: float | None = None, **settings: Any) -> list[Path]:
    """Write a block as readable Verilog with file list, constraints and registers, as `lanikai verilog` does.

    - `what`: `router`, `nic`, `network`, `rate-control`, ... (docs/verilog.md). `out`: a new or an empty folder.
    - `clock_mhz`: the clock in the constraints (default: the card's own, or 100).
    - `settings`: the block's parameters, those of its link too (`vls=4`).

    Returns the files. Raises UserError and MissingTool before anything is written.
    """
    from lanikai.sim.export.blocks import configure_export
    from lanikai.sim.export.export import export

    given = _settings(settings)
    config, folder = configure_export(what, given), Path(out)
    clock_hz = None if clock_mhz is None else round(clock_mhz * 1e6)
    return [folder / name for name in export(what, config, folder, settings=given, clock_hz=clock_hz)]


@plain
def synthesize(what: str, *, seeds: int = 3, board: str | None = None, **settings: Any) -> polars.DataFrame:
    """Synthesize a block for an FPGA, as `lanikai synth` does: a row with its area, and `fmax_mhz` of each seed.

    - `seeds`: placements; 0 for area alone. `board`: placed for its device, clock and pins.
    - `settings`: as of `verilog`.

    Raises UserError and MissingTool before anything is run.
    """
    import polars
    from lanikai.sim.synth import synthesize as tools
    from lanikai.sim.synth.blocks import configure

    config = configure(what, _settings(settings))
    found = tools.synthesize(
        what, config, seeds=list(range(1, seeds + 1)), progress=lambda text: None, board=board
    )
    report = found.as_json()
    columns = (
        "lut4",
        "ff",
        "bram",
        "carry",
        "fmax_mhz",
        "critical_path_logic_ns",
        "critical_path_routing_ns",
    )
    row = {"block": what, "device": report["device"], "board": board}
    return polars.DataFrame([row | {key: report[key] for key in columns}], infer_schema_length=None)


def _settings(settings: dict[str, Any]) -> list[str]:
    """Settings as the command line has them."""
    return [
        f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in settings.items()
    ]
