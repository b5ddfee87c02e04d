"""Writes the pages that come from the code (`make docs`). A test fails when they are out of date.

The picture `share-senders.png` is not made here, since it takes a run. It is `plot.png` of `lanikai run share-senders`
in its quick size, copied.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import lanikai.hdl.registers
from lanikai.hdl.monitors import MONITORS
from lanikai.hdl.nic.blocks import HOST_REGISTERS, NIC_REGISTERS
from lanikai.hdl.registers import Register
from lanikai.sim.experiments.framework.parameters import ranges
from lanikai.sim.experiments.registry import EXPERIMENTS, listing
from lanikai.sim.fitted import page as fitted_table
from lanikai.sim.fpga.designs import DESIGNS
from lanikai.sim.fpga.settings import Setting, design_settings, experiment_name, host_settings
from lanikai.sim.fpga.table import rows as fpga_rows
from lanikai.sim.host.via import vipl
from lanikai.sim.host.via.vipl.ends import ends_of
from lanikai.sim.published import table, tables

HERE = Path(__file__).parent


def experiments_page() -> str:
    """Every experiment that is built, then what is not built yet."""
    lines = [
        "# Experiments",
        "",
        "*Made by `docs/generate.py` from the registry.* `lanikai list` shows the same; `lanikai run NAME` "
        "runs one.",
        "",
    ]
    for experiment in EXPERIMENTS.values():
        lines += [f"## {experiment.name}", "", experiment.asks, "", f"Source: {experiment.source}.", ""]
        lines += ["| parameter | values | what it is |", "|---|---|---|"]
        values = ranges(experiment.Parameters)
        for name, field in experiment.Parameters.model_fields.items():
            default = "none: it must be set" if field.is_required() else f"default `{shown(field.default)}`"
            lines.append(f"| `{name}` | {values[name]}; {default} | {field.description} |")
        if experiment.name in tables():
            lines += ["", "Published:", ""]
            lines += [
                f"- `{key}` = `{value}`" for key, value in table(experiment.name).items() if key != "source"
            ]
        lines.append("")
    lines += ["## Not built yet", "", "| experiment | source |", "|---|---|"]
    lines += [f"| {row.name} | {row.source} |" for row in listing() if row.state == "not built yet"]
    return "\n".join(lines) + "\n"


def shown(default: Any) -> str:
    """A default as it stands after `--set KEY=`, where that is not as Python writes it."""
    return json.dumps(default) if isinstance(default, bool) else str(default)


def registers_page() -> str:
    """Every register of card, router, adapter and traffic system, from the one declaration in SystemRDL."""
    lines = [
        "# Registers",
        "",
        "*Made by `docs/generate.py` from `hdl/nic/*.rdl`, `hdl/nic/optional/*.rdl`, `hdl/router/router.rdl`, "
        "`hdl/hca/hca.rdl`, `hdl/traffic/*.rdl` and `hdl/board/board.rdl`.*",
        "",
    ]
    for title, name, registers in (
        ("The NIC processor's", "nic/nic.rdl`, `hdl/nic/optional/", NIC_REGISTERS),
        ("The host's", "nic/host.rdl`, `hdl/nic/optional/", HOST_REGISTERS),
        ("A router's", "router/router.rdl", None),
        ("A host channel adapter's", "hca/hca.rdl", None),
        ("A traffic node's", "traffic/node.rdl", None),
        ("A traffic class'", "traffic/class.rdl", None),
        ("The statistics'", "traffic/statistics.rdl", None),
        ("The measurement's", "traffic/measurement.rdl", None),
        ("A board design's", "board/board.rdl", None),
    ):
        lines += [f"## {title} registers (`hdl/{name}`)", ""]
        lines += ["| offset | register | bits | field | access | what it does |", "|---|---|---|---|---|---|"]
        folder = Path(lanikai.hdl.registers.__file__).parent
        lines += register_rows(lanikai.hdl.registers.load(folder / name) if registers is None else registers)
        lines.append("")
    return "\n".join(lines)


def register_rows(registers: Mapping[str, Register]) -> Iterator[str]:
    """A row for each register, then one for each of its fields."""
    for register in registers.values():
        yield f"| `{register.offset:#05x}` | **{register.name}** | | | | {register.doc} |"
        for field in register.fields.values():
            high = field.low + field.width - 1
            bits = f"{high}:{field.low}" if field.width > 1 else str(field.low)
            access = "write 1 clears" if field.write_one_clears else "rw" if field.sw_writable else "r"
            yield f"| | | {bits} | `{field.name}` | {access} | {field.doc} |"


def via_calls_page() -> str:
    """Every call of VIPL, each code with which it may end, and when it does."""
    lines = [
        "# VIPL's calls and their codes",
        "",
        "*Made by `docs/generate.py` from `sim/host/via/vipl/`.* [via.md](via.md) says what calls and codes mean.",
        "",
        "Each call may end with `VIP_SUCCESS`, and with these. A call that ends with any other raises AssertionError. "
        "`tests/sim/host/via/test_codes.py` brings about every row, by a way named in its table, and fails for a row "
        "that has none.",
        "",
        "| call | code | when |",
        "|---|---|---|",
    ]
    for call in (name for name in vipl.__all__ if name.startswith("Vip")):
        for code, when in ends_of(call).items():
            lines.append(f"| `{call}` | `{code.name}` | {when} |")
            call = " "
    return "\n".join(lines).replace("| ` ` |", "| |") + "\n"


def blocks_page() -> str:
    """Every block of the RTL (`catalogue.py`)."""
    sys.path.insert(0, str(HERE))
    import catalogue

    return catalogue.page()


def mpi_calls_page() -> str:
    """Every call of MPI with its signature (`mpi_calls.py`)."""
    sys.path.insert(0, str(HERE))
    import mpi_calls

    return mpi_calls.page()


def bench_page() -> str:
    """The speeds of a run of `lanikai bench --build --json docs/bench.json`."""
    report = json.loads((HERE / "bench.json").read_text())
    machine = report["machine"]
    lines = [
        "# Measured speeds",
        "",
        "*Made by `docs/generate.py` from `docs/bench.json`, a run of `lanikai bench --build --json docs/bench.json`.*",
        "",
        f"The machine is {machine['processor']}, {machine['cores']} cores, {machine['system']}. The numbers are "
        "medians, in thousands of cycles a second of processor time. [speed.md](speed.md) says how they are measured.",
        "",
        "| case | under cocotb | model alone | ratio | spread | build, s | MB |",
        "|---|---|---|---|---|---|---|",
    ]

    def number(value: float | None, form: str, scale: float = 1) -> str:
        return "" if value is None else format(value * scale, form)

    for one in report["rows"]:
        cells = [
            one["case"],
            number(one["cycles_per_second"], ".1f", 1e-3),
            number(one["plain_loop_cycles_per_second"], ".1f", 1e-3),
            number(one["ratio"], ".2f"),
            number(one["spread"], ".0%"),
            number(one["build_seconds"], ".0f"),
            number(one["peak_memory_mb"], ".0f"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, *beside_lines(report.get("beside"))]) + "\n"


def beside_lines(beside: Mapping[str, Any] | None) -> list[str]:
    """The comparison with a peer of the same run, if it has one: `lanikai bench --beside`."""
    if beside is None:
        return []
    peer = beside["peer"]
    heads = ["case", "under cocotb", peer, "ratio", "spread", "latency", peer, "accepted", peer]
    lines = [
        "",
        f"## Beside {peer}",
        "",
        f"In turns, {len(beside['rows'][0]['seeds'])} a case. Speeds are in thousands of cycles a second, latencies in "
        "cycles, accepted loads in flits a node and cycle.",
        "",
        *(f"- {sentence}" for sentence in beside["differences"]),
        "",
        f"| {' | '.join(heads)} |",
        "|---" * len(heads) + "|",
    ]
    for one in beside["rows"]:
        cells = [
            one["case"],
            *(f"{one[name] / 1e3:.1f}" for name in ("cycles_per_second", "peer_cycles_per_second")),
            f"{one['ratio']:.2f}",
            f"{one['spread']:.0%}",
            *(f"{one[name]:.1f}" for name in ("latency_cycles", "peer_latency_cycles")),
            *(f"{one[name]:.3f}" for name in ("accepted", "peer_accepted")),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def filled(page: str, tables: Mapping[str, str], source: str = "", *, text: str | None = None) -> str:
    """The page as it is, or as `text` is, with its tables of these names made anew; each stands between two
    comments."""
    text = (HERE / page).read_text() if text is None else text
    for name, table_text in tables.items():
        begin, end = f"<!-- {name}: made by docs/generate.py{source} -->\n", f"<!-- end of {name} -->\n"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{table_text}{end}{rest.partition(end)[2]}"
    return text


def results_page() -> str:
    """The page with its tables of fitted numbers and of broken claims."""
    sys.path.insert(0, str(HERE.parent / "tests"))
    from support.system.broken_claims import page as broken_claims_table

    return filled("results.md", {"fitted numbers": fitted_table(), "broken claims": broken_claims_table()})


def mutation_page() -> str:
    """The page with the results of `make mutate`."""
    sys.path.insert(0, str(HERE.parent / "tests"))
    from support.mutation.survivors import page

    return filled("mutation.md", {"mutation": page()}, " from docs/mutation.json")


def coverage_page() -> str:
    """The page with the coverage that `make coverage` counted."""
    sys.path.insert(0, str(HERE.parent / "tests"))
    from support.coverage.report import not_taken, table

    found = json.loads((HERE / "coverage.json").read_text())
    tests = "".join(f"- `{test}`\n" for test in found["tests"])
    tables = {
        "coverage": f"\n{tests}\n{table(found['files'])}\n\n",
        "lines not taken": f"\n{not_taken(found['files'])}\n\n",
    }
    return filled("coverage.md", tables, " from docs/coverage.json")


def verification_page() -> str:
    """The page with its tables of monitors, from their rules, and of proofs, from their declarations and last runs."""
    sys.path.insert(0, str(HERE.parent / "tests"))
    from support.formal.table import table as proofs_table

    rows = json.loads((HERE / "verification.json").read_text())["rows"]
    page = filled("verification.md", {"monitors": monitors_table()})
    return filled(
        "verification.md",
        {"proofs": "\n" + proofs_table(rows) + "\n"},
        " from docs/verification.json",
        text=page,
    )


def monitors_table() -> str:
    """A row a monitor: its interface, and the rules of each side."""
    lines = ["", "| interface | monitor | the sender's rules | the receiver's rules |", "|---|---|---|---|"]
    for signature, monitor in MONITORS.items():
        cells = [
            ", ".join(f"`{name}`" for name, rule in monitor.rules.items() if rule.side == side)
            for side in ("sender", "receiver")
        ]
        name = f"{signature.__module__.replace('lanikai.', '')}.{signature.__name__}"
        lines.append(f"| `{name}` | `{monitor.__name__}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n\n"


COLUMNS = {
    "lut4": "LUT4",
    "lut4_sites": "all LUT4 sites",
    "ff": "FF",
    "distributed_ram": "RAM of LUTs",
    "bram": "block RAM",
    "fmax_mhz": "fmax, MHz",
    "decision_cycles": "decision, cycles",
    "target": "target",
}
"""Columns of the tables of measured areas, by their keys in `synthesis.json`."""

TABLES = {
    "routers": ("lut4", "ff", "distributed_ram", "bram", "fmax_mhz", "target"),
    "cards": ("lut4", "lut4_sites", "ff", "bram", "fmax_mhz", "target"),
    "adapter": ("lut4", "lut4_sites", "ff", "distributed_ram", "bram", "fmax_mhz", "target"),
    "blocks": ("lut4", "lut4_sites", "ff", "distributed_ram", "bram", "fmax_mhz"),
    "rate control": ("lut4", "lut4_sites", "ff", "bram", "fmax_mhz", "decision_cycles"),
    "DMA": ("lut4", "ff", "distributed_ram"),
    "VL arbiters": ("lut4", "ff", "bram"),
}
"""The tables of measured areas, and the columns of each."""


def measured(name: str) -> str:
    """The table `name` of what was synthesized: a row for each that `synthesis.json` has of it."""
    rows = [row for row in json.loads((HERE / "synthesis.json").read_text())["rows"] if name in row["tables"]]
    keys = TABLES[name]
    lines = [f"| | {' | '.join(COLUMNS[key] for key in keys)} |", "|" + "---|" * (len(keys) + 1)]
    for row in rows:
        cells = [row["label"]]
        for key in keys:
            value = row.get(key, "")
            text = f"{value:,}" if isinstance(value, int) else str(value)
            if key == "fmax_mhz":
                note = f" ({row['note']})" if row.get("note") else ""
                text = ", ".join(map(str, value)) + note
            cells.append(text)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n" + "\n".join(lines) + "\n\n"


def measured_page(page: str, *names: str) -> str:
    """The page with its tables of measured areas."""
    tables = {f"measured {name}": measured(name) for name in names}
    return filled(page, tables, " from docs/synthesis.json")


def fpga_page() -> str:
    """The page of boards with its tables of builds and of settings."""
    columns = (
        "design",
        "board",
        "settings",
        "device",
        "LUT",
        "block RAM",
        "multipliers",
        "clock, MHz",
        "fmax, MHz",
    )
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    lines += [f"| {' | '.join(row)} |" for row in fpga_rows()]
    table = "\n" + "\n".join(lines) + "\n\n"
    text = filled("fpga.md", {"measured designs": table}, " from sim/fpga/measured.json")
    sizes = "\n".join(settings_table(f"`{name}`", design_settings(name)) for name in DESIGNS)
    settings = "\n".join(
        settings_table(f"`{experiment_name(name)}`, on `{name}`", host_settings(name)) for name in DESIGNS
    )
    return filled(
        "fpga.md",
        {"settings of designs": f"\n{sizes}\n", "settings of measurements": f"\n{settings}\n"},
        " from sim/fpga",
        text=text,
    )


def settings_table(head: str, settings: list[Setting]) -> str:
    """A row for each name that `--set` takes; `head` says what has it."""
    lines = [f"| {head} | values | default | what it is |", "|---|---|---|---|"]
    lines += [f"| `{one.name}` | {one.values} | `{one.default}` | {one.what} |" for one in settings]
    return "\n".join(lines) + "\n"


def topologies_page() -> str:
    """The page of topologies with its tables."""
    sys.path.insert(0, str(HERE))
    from topology_page import examples_table, kinds_table, measured_table

    tables = {"topologies": kinds_table(), "examples": examples_table()}
    text = filled("topologies.md", tables, " from hdl/topologies")
    measured = {"measured": measured_table()}
    return filled("topologies.md", measured, " from docs/topologies.json", text=text)


def router_page() -> str:
    """The page of the router with its tables of adaptive routing."""
    sys.path.insert(0, str(HERE))
    from adaptive_page import mesh_table, others_table

    tables = {"measured mesh": mesh_table(), "measured choices": others_table()}
    return filled("router.md", tables, " from docs/adaptive.json")


PAGES = {
    "arbiters.md": lambda: measured_page("arbiters.md", "VL arbiters"),
    "bench.md": bench_page,
    "blocks.md": blocks_page,
    "via-calls.md": via_calls_page,
    "dma.md": lambda: measured_page("dma.md", "DMA"),
    "coverage.md": coverage_page,
    "experiments.md": experiments_page,
    "mpi-calls.md": mpi_calls_page,
    "mutation.md": mutation_page,
    "fpga.md": fpga_page,
    "registers.md": registers_page,
    "rate-control.md": lambda: measured_page("rate-control.md", "rate control"),
    "results.md": results_page,
    "router.md": router_page,
    "topologies.md": topologies_page,
    "verification.md": verification_page,
    "synthesis.md": lambda: measured_page("synthesis.md", "routers", "cards", "adapter", "blocks"),
}
"""File name in this folder: what makes its text."""

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page())
