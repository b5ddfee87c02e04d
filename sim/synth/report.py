"""The results of Yosys and nextpnr for a design, read from their reports, and the object that `--json` prints."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Area", "SynthesisReport", "Timing", "name_of", "parse_area", "parse_modules", "parse_timing"]

CELLS = {
    "lut4": "LUT4",
    "ff": "TRELLIS_FF",
    "bram": "DP16KD",
    "carry": "CCU2C",
    "distributed_ram": "TRELLIS_DPR16X4",
}
"""Yosys's cell of each figure."""
CARRY_LUTS = 2
"""LUT4s that the two bits of a CCU2C take."""
DISTRIBUTED_RAM_LUTS = 6
"""LUT4s that a TRELLIS_DPR16X4 takes: 4 hold its 16 rows of 4 bits, and the 2 beside its write port are lost."""

_GENERATED = re.compile(
    r"_(?:LUT4|TRELLIS_FF|TRELLIS_DPR16X4|PFUMX|L6MUX21|CCU2C|DP16KD|MULT18X18D)_.*|\$.*", re.DOTALL
)
"""The ending that Yosys appends to the name of a signal to name cells and nets near it."""
_MEMORY_PART = re.compile(r"\.\d+\.\d+(?:_[A-Z]+\d*)?(?:_\d+)?$")
"""The ending that Yosys appends to the name of a memory to name the RAM blocks that it is made of."""


@dataclass(frozen=True, kw_only=True)
class Area:
    """Cells of a design.

    - `lut4`: LUT4s.
    - `ff`: flip-flops.
    - `bram`: DP16KD, 18 Kbit each.
    - `carry`: CCU2C, two bits each.
    - `distributed_ram`: TRELLIS_DPR16X4, 16 rows of 4 bits each.
    """

    lut4: int
    ff: int
    bram: int
    carry: int
    distributed_ram: int

    @property
    def lut4_sites(self) -> int:
        """LUT4s of the device that are taken: logic, carry chains, and RAM made of LUTs."""
        return self.lut4 + CARRY_LUTS * self.carry + DISTRIBUTED_RAM_LUTS * self.distributed_ram


@dataclass(frozen=True, kw_only=True)
class Timing:
    """One run of nextpnr.

    - `seed`: its seed.
    - `fmax_mhz`: the clock frequency that it reached.
    - `path`: the names of the signals along the slowest path between registers.
    - `logic_ns`, `routing_ns`: that path's delay in logic and in wires.
    """

    seed: int
    fmax_mhz: float
    path: tuple[str, ...]
    logic_ns: float
    routing_ns: float


@dataclass(frozen=True, kw_only=True)
class SynthesisReport:
    """Everything found out about the block `what` with `parameters`, on `device`.

    - `area`: the cells of the whole.
    - `modules`: the modules it is made of (`parse_modules`).
    - `timing`: the timing for each seed.
    - `versions`: those of the tools.
    - `target`: bounds for the block, if there are any.
    - `blocks`: reports of its blocks, each alone, by their labels.
    - `board`: its `name`, `clock_mhz`, `clock_pin`, and whether every placement keeps to its clock (`clock_met`). It is
      None out of context.
    """

    what: str
    parameters: Mapping[str, Any]
    device: str
    area: Area
    modules: Mapping[str, Area] = field(default_factory=dict)
    timing: Sequence[Timing] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    target: Mapping[str, int] | None = None
    blocks: Mapping[str, SynthesisReport] = field(default_factory=dict)
    board: Mapping[str, Any] | None = None

    @property
    def slowest(self) -> Timing | None:
        """The run with the lowest fmax; None if there was none."""
        return min(self.timing, key=lambda timing: timing.fmax_mhz, default=None)

    def as_json(self) -> dict[str, Any]:
        """The object that `--json` prints. `critical_path`: signals along the slowest path of the slowest seed,
        from register to register."""
        slowest = self.slowest
        return {
            "what": self.what,
            "parameters": dict(self.parameters),
            "device": self.device,
            "lut4": self.area.lut4,
            "ff": self.area.ff,
            "bram": self.area.bram,
            "carry": self.area.carry,
            "distributed_ram": self.area.distributed_ram,
            "lut4_sites": self.area.lut4_sites,
            "fmax_mhz": [timing.fmax_mhz for timing in self.timing],
            "seeds": [timing.seed for timing in self.timing],
            "critical_path": list(slowest.path) if slowest else [],
            "critical_path_logic_ns": slowest.logic_ns if slowest else None,
            "critical_path_routing_ns": slowest.routing_ns if slowest else None,
            "modules": {
                name: {key: getattr(area, key) for key in CELLS} for name, area in self.modules.items()
            },
            "versions": dict(self.versions),
            **({"board": dict(self.board)} if self.board else {}),
            **({"target": dict(self.target)} if self.target else {}),
            **(
                {"blocks": {label: report.as_json() for label, report in self.blocks.items()}}
                if self.blocks
                else {}
            ),
        }

    def json_text(self) -> str:
        """`as_json` as text with a newline at its end."""
        return json.dumps(self.as_json(), indent=2, ensure_ascii=False) + "\n"


def parse_area(text: str) -> Area:
    """The whole design in the output of Yosys's `stat -json`. Raises ValueError if it is none."""
    return _area(_stat(text)["design"]["num_cells_by_type"])


def parse_modules(text: str, *, top: str, names: Sequence[str]) -> dict[str, Area]:
    """Cells of each module, its submodules not counted, in the flat netlist of `top` that Yosys wrote as JSON.

    `names`: the modules before flattening, `top.sub.block`. A cell counts for the module of the signal that Yosys named
    it after. So where two modules meet, logic may count for either; the sum is the whole. Raises ValueError if the text
    is no such netlist.
    """
    try:
        cells = json.loads(text)["modules"][top]["cells"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"not a netlist of {top} in JSON: {error!r}") from None
    known = {re.sub(r"\$\d+$", "", name) for name in names}
    found: dict[str, Counter[str]] = {}
    for cell, facts in cells.items():
        module = f"{top}.{cell}"
        while module not in known and module != top:
            module = module.rpartition(".")[0]
        found.setdefault(module, Counter())[facts["type"]] += 1
    return {name: _area(counts) for name, counts in sorted(found.items())}


def _stat(text: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(text)
        found["design"]["num_cells_by_type"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"not a report of yosys stat -json: {error!r}") from None
    return found


def _area(cells: Mapping[str, int]) -> Area:
    return Area(**{name: cells.get(cell, 0) for name, cell in CELLS.items()})


def parse_timing(text: str, *, seed: int, prefix: str = "") -> Timing:
    """The report that nextpnr wrote (`--report`) with `seed`; `prefix` is taken off names. Raises ValueError if the
    text is none, or has no clock."""
    try:
        found = json.loads(text)
        fmax = min(clock["achieved"] for clock in found["fmax"].values())
        # Between registers; other paths begin or end at "<async>".
        paths = [path["path"] for path in found["critical_paths"] if path["from"] == path["to"] != "<async>"]
        slowest = max(paths, key=lambda steps: sum(step["delay"] for step in steps))
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a report of nextpnr, or no path between registers: {error!r}") from None
    names: list[str] = []
    for step in slowest:
        name = name_of(step["net"] if "net" in step else step["to"]["cell"], prefix)
        if name and name not in names[-1:]:
            names.append(name)
    routing = sum(step["delay"] for step in slowest if step["type"] == "routing")
    logic = sum(step["delay"] for step in slowest) - routing
    return Timing(
        seed=seed,
        fmax_mhz=round(fmax, 2),
        path=tuple(names),
        logic_ns=round(logic, 2),
        routing_ns=round(routing, 2),
    )


def name_of(net: str, prefix: str = "") -> str:
    """The signal in Amaranth that a net or cell was named after, without the bit: `"grant"` for
    `"grant$3_LUT4_A_Z[2]"`. It is empty if Yosys made the name up."""
    name = _GENERATED.sub("", net.removeprefix(prefix))
    name = re.sub(r"\[\d+\]$", "", name)
    return _MEMORY_PART.sub("", name)
