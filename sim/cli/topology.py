"""`lanikai topology`: a network's distances, bisection, loads and ideal throughput, and what the RTL accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .json_file import JsonFile, check_json, write_json

if TYPE_CHECKING:
    from rich.console import Console

    from ..topology.analysis import Analysis, Pattern

__all__ = ["topology"]


def topology(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Network: 'ring(8)', 'dragonfly(4,2,2)', mesh4x4, FILE.json."),
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A parameter of network-load: vls (by itself 4), routing, ..."
        ),
    ] = None,
    png: Annotated[
        str | None, typer.Option("--png", metavar="FILE", help="Draw it there: links coloured by their load.")
    ] = None,
    pattern: Annotated[
        str, typer.Option(metavar="NAME", help="The traffic whose loads the drawing shows.")
    ] = "uniform",
    measure: Annotated[
        bool, typer.Option("--measure", help="Simulate full load too: what the RTL accepts of each pattern.")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**63 - 1, help="Seed of --measure.")] = 1,
    jobs: Annotated[
        int | None,
        typer.Option("-j", "--jobs", metavar="N", min=1, max=1024, help="Patterns measured at once."),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Print a network: distances, bisection, deadlock check, loads and ideal throughput of each traffic pattern.

    Exit status: 0 done; 1 the RTL accepts more than the bound; 2 wrong input, or routes that could deadlock; 3
    something is missing on this machine.
    """
    from lanikai.hdl.topologies import topology_named

    from ..errors import UserError
    from ..experiments.framework.run_folder import check_file
    from ..names import unknown
    from ..network_files.registry import file_format
    from ..topology.analysis import analyse
    from ..topology.drawing import save_drawing
    from ..topology.loads import PATTERNS
    from ..topology.measure import TAKEN, parameters_of
    from .screen import screen

    for setting in settings or []:
        key = setting.partition("=")[0].strip()
        if key not in TAKEN:
            raise unknown("parameter", key, TAKEN)
    if pattern not in PATTERNS:
        raise unknown("pattern", pattern, PATTERNS)
    parameters = parameters_of(name, settings or [])
    if len(parameters.allocators) > 1:
        raise UserError(f"allocator = {parameters.allocator!r}: one allocator")
    check_json(json_file)
    if png is not None:
        check_file(Path(png), "--png")
    network = parameters.system(parameters.allocators[0]).network
    shape = None if file_format(name) else topology_named(name)
    analysis = analyse(shape.name if shape else name, network, shape)
    chosen = next(one for one in analysis.patterns if one.name == pattern)
    if png is not None and chosen.refused:
        raise UserError(f"--pattern {pattern}: {chosen.refused}")
    console = screen(stderr=json_file == "-")
    if measure:
        _measure(name, settings or [], analysis, seed=seed, jobs=jobs, console=console)
    if png is not None:
        save_drawing(Path(png), analysis, shape, pattern)
    write_json(json_file, json.dumps(analysis.as_json(), indent=2) + "\n")
    _show(console, analysis)
    if png is not None:
        console.print(f"drawing: {png}", markup=False, highlight=False, soft_wrap=True)
    over = [one.name for one in analysis.patterns if _breaks_the_bound(one)]
    if over:
        console.print(
            f"the RTL accepts more than the bound: {', '.join(over)}; one of the two is wrong",
            highlight=False,
        )
        raise typer.Exit(1)


def _measure(
    name: str, settings: list[str], analysis: Analysis, *, seed: int, jobs: int | None, console: Console
) -> None:
    """Put what the RTL accepts into the patterns."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from ..build.cache import Cache
    from ..machine import Threads, cores
    from ..topology.measure import measure
    from . import backend, doctor

    Cache().check()
    doctor.require(doctor.RUN)
    patterns = [one for one in analysis.patterns if not one.refused]
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        build = bars.add_task("build", total=1.0)
        points = [bars.add_task(one.name, total=1.0) for one in patterns]

        def tell(index: int, fraction: float, text: str) -> None:
            bars.update(build if index < 0 else points[index], completed=fraction)

        found = measure(
            name,
            settings,
            [one.name for one in patterns],
            seed=seed,
            workers=jobs or cores(),
            backend=backend.make(Threads.share(None, len(patterns), jobs or cores())),
            progress=tell,
        )
    for one, measured in zip(patterns, found, strict=True):
        one.measured = measured


def _breaks_the_bound(pattern: Pattern) -> bool:
    """Whether more was accepted than can be, but for the packets that were under way when the window began."""
    from ..topology.measure import SLACK

    if pattern.loads is None or pattern.measured is None:
        return False
    return pattern.measured["accepted_flits_per_sender_per_cycle"] > pattern.loads.most * (1 + SLACK)


def _show(console: Console, analysis: Analysis) -> None:
    from rich.table import Table

    network, router = analysis.network, analysis.network.router
    facts = Table(box=None, pad_edge=False, show_header=False)
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    links, known = analysis.bisection
    channels = "ports with their VLs" if analysis.by_vl else "ports"
    routed, mean = analysis.routed_diameter, analysis.mean_hops
    by_routes = "" if routed in (None, analysis.diameter) else f", {routed} by the routes"
    verdict = (
        "none: no cycle among the channels that packets may wait for"
        if analysis.chooses
        else f"none: no cycle among {analysis.channels} channels ({channels}), which wait for one another in "
        f"{analysis.dependencies} pairs"
    )
    for key, value in (
        (
            "topology",
            f"{analysis.name}: {len(network.nodes)} nodes, {network.routers} routers of {router.ports} ports, "
            f"{len(network.links)} links",
        ),
        ("routing", f"{router.routing}, {router.link.vls} VLs"),
        *([("choice of ways", f"{', '.join(analysis.others)}, as routing")] if analysis.others else []),
        ("diameter", f"{analysis.diameter} link{'' if analysis.diameter == 1 else 's'}{by_routes}"),
        ("mean hops", "as routers choose" if mean is None else f"{mean:.3f} links, all pairs of nodes"),
        ("bisection", f"{'at most ' if known == 'at most' else ''}{links} links ({_KNOWN[known]})"),
        ("deadlock", verdict),
    ):
        facts.add_row(key, value)
    console.print(facts, highlight=False)
    console.print()
    measured = any(one.measured for one in analysis.patterns)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("pattern", no_wrap=True)
    for heading in (
        "mean hops",
        "largest load",
        "ideal",
        "bound",
        *(("accepted", "least") if measured else ()),
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    refused = []
    for one in analysis.patterns:
        if one.refused:
            refused.append(f"{one.name}: {one.refused}")
            continue
        loads = one.loads
        values = (loads.mean_hops, loads.largest, loads.ideal, loads.most) if loads else (None,) * 4
        cells = ["" if value is None else f"{value:.3f}" for value in values]
        if one.measured:
            cells += [f"{value:.3f}" for value in one.measured.values()]
        table.add_row(one.name, *cells)
    console.print(table, highlight=False)
    for line in refused:
        console.print(f"not {line}", highlight=False, markup=False)
    notes = ["", "flits a sending node and cycle:"]
    notes += ["- ideal: all senders at one rate", "- bound: the mean, if some send more"]
    if measured:
        notes += [
            "- accepted: the mean in the RTL at full load",
            "- least: what comes to the node that gets least",
        ]
    for note in notes:
        console.print(note, highlight=False)
    if analysis.chooses:
        console.print(
            f"routing {router.routing} leaves packets a choice of ways: loads are as routers choose",
            highlight=False,
            markup=False,
        )
    if network.by_destination:
        console.print(network.by_destination, highlight=False, markup=False)


_KNOWN = {
    "closed form": "closed form",
    "counted": "all halves tried",
    "at most": "Kernighan-Lin; the smallest may be smaller",
}
