"""Folders of runs and sweeps that no simulation has made, in the form in which the program writes them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import polars

VERSIONS = {
    "lanikai": "0.1.0",
    "python": "3.11.0",
    "amaranth": "0.5.8",
    "cocotb": "2.1.0",
    "verilator": "5.48",
}
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)
"""A picture of one pixel."""
LOADS = (0.2, 0.5, 0.8)
SEEDS = (11, 12, 13)


def write_run(
    folder: Path, facts: dict[str, Any], tables: dict[str, list[dict[str, Any]]] | None = None
) -> Path:
    """A run's folder of these facts and tables."""
    folder.mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps(facts))
    (folder / "plot.png").write_bytes(PNG)
    for name, rows in (tables or {}).items():
        (folder / "tables").mkdir(exist_ok=True)
        polars.DataFrame(rows, infer_schema_length=None).write_parquet(folder / "tables" / f"{name}.parquet")
    return folder


def run_facts(experiment: str, points: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """The object of `results.json`."""
    return {
        "experiment": experiment,
        "size": "quick",
        "seed": 1,
        "parameters": {"network": "mesh2x2"},
        "command": f"lanikai run {experiment} --seed 1",
        "versions": VERSIONS,
        "cycles": 1000,
        "wall_seconds": 1.5,
        "points": points,
        "claims": [{"text": "it holds", "holds": True}],
        "claims_not_judged": [],
        "files": {"csv": "results.csv"},
    } | more


def shares(achieved: tuple[float, float] = (40.5, 41.0), published: float = 40.91) -> dict[str, Any]:
    """The facts of a run of share-senders with one setting of two flows."""
    point = {
        "parameters": {"idt_over_T": [2.0, 2.0], "message_bytes": 65536},
        "results": {"bandwidth_mb_per_s": list(achieved), "share": [0.5, 0.5]},
        "published": {"bandwidth_mb_per_s": [published, published]},
        "tolerance": {"bandwidth_mb_per_s": 0.03},
        "within": None,
        "seed": 5,
        "cycles": 500,
    }
    return run_facts("share-senders", [point])


def load_run(folder: Path, *, network: str = "mesh2x2") -> Path:
    """A run of network-load with two classes and three seeds, and every table."""
    rng = random.Random(1)
    points, latency, links, series = [], [], [], []
    for number, load in enumerate(LOADS):
        repetitions = []
        for seed in SEEDS:
            accepted = min(load, 0.7) + rng.uniform(-0.01, 0.01)
            mean = 40 / (1.05 - load) + rng.uniform(-2, 2)
            result = {
                "offered_flits_per_node_per_cycle": load,
                "accepted_flits_per_node_per_cycle": accepted,
                "latency_mean_cycles": mean,
                "latency_p99_cycles": 3 * mean,
                "saturated": False,
                "class_accepted_flits_per_node_per_cycle": [accepted / 4, 3 * accepted / 4],
                "class_latency_mean_cycles": [mean - 5, mean + 5],
            }
            repetitions.append({"seed": seed, "cycles": 100, "results": result})
            place = {"point": number, "seed": seed}
            for of_class in (0, 1):
                for step in range(40):
                    packets = int(20_000 * 0.7**step)
                    last = int(30 + 12 * step * (1 + load))
                    row = {"class": of_class, "destination": 0, "first_cycles": last - 8, "last_cycles": last}
                    latency.append(place | row | {"packets": packets})
                for first in range(-1000, 4000, 500):
                    flits = int(2000 * load + rng.uniform(-50, 50))
                    row = {"first_cycle": first, "cycles": 500, "class": of_class, "accepted_flits": flits}
                    series.append(place | row | {"packets": flits // 40, "latency_mean_cycles": mean})
            links += [place | row for row in mesh_links(load, rng)]
        points.append(
            {
                "parameters": {"network": network, "load": load, "class_shares": [0.25, 0.75], "vls": 4},
                "results": repetitions[0]["results"],
                "published": None,
                "tolerance": None,
                "within": None,
                "seed": SEEDS[0],
                "cycles": 300,
                "intervals": {},
                "repetitions": repetitions,
            }
        )
    tables = {"latency": latency, "links": links, "time_series": series}
    return write_run(folder, run_facts("network-load", points), tables)


def mesh_links(load: float, rng: random.Random) -> list[dict[str, Any]]:
    """The rows of the links of a mesh of 2 x 2 routers with a node each."""
    ends = [(("node", n, 0), ("router", n, 0)) for n in range(4)]
    ends += [(("router", one, 1), ("router", other, 2)) for one, other in ((0, 1), (2, 3), (0, 2), (1, 3))]
    rows = []
    for one, other in [pair for two in ends for pair in (two, two[::-1])]:
        use = min(1.0, load * rng.uniform(0.5, 1.3))
        row = {
            "from": one[0],
            "from_number": one[1],
            "from_port": one[2],
            "to": other[0],
            "to_number": other[1],
        }
        rows.append(row | {"to_port": other[2], "flits": int(4000 * use), "cycles": 4000, "use": use})
    return rows


def write_sweep(folder: Path, rows: list[dict[str, Any]], **more: Any) -> Path:
    """A sweep's folder of these rows."""
    folder.mkdir(parents=True)
    facts = {
        "experiment": "network-load",
        "size": "quick",
        "seed": 1,
        "grid": ["packet_flits=8,40", "seed=1,2,3"],
        "settings": ["network=router4"],
        "versions": VERSIONS,
        "sources": "0" * 40,
    } | more
    (folder / "sweep.json").write_text(json.dumps(facts))
    frame = polars.DataFrame(rows, infer_schema_length=None) if rows else polars.DataFrame()
    frame.write_parquet(folder / "table.parquet")
    claims = [{"set_packet_flits": 8, "claim": "it is so", "holds": True, "not_judged": ""}] if rows else []
    polars.DataFrame(claims).write_csv(folder / "claims.csv")
    polars.DataFrame([], schema={"point": polars.String, "why": polars.String}).write_csv(
        folder / "failures.csv"
    )
    return folder


def sweep_rows(points: int, *, flows: int = 1, seeds: int = 2) -> list[dict[str, Any]]:
    """Rows of so many points of a sweep of network-load over packet lengths, loads and seeds."""
    rng = random.Random(2)
    rows = []
    for number in range(points):
        combination, seed = divmod(number, seeds)
        length, step = divmod(combination, 10)
        load = round(0.1 + 0.08 * step, 2)
        for flow in range(flows):
            row = {"set_network": "router4", "set_packet_flits": 8 + length, "set_seed": seed, "point": step}
            row |= {"class": flow if flows > 1 else None, "network": "router4", "packet_flits": 8 + length}
            row |= {"load": load, "accepted_flits_per_node_per_cycle": load + rng.uniform(-0.01, 0.01)}
            row |= {"latency_mean_cycles": 30 / (1 - load) + rng.uniform(-1, 1), "saturated": False}
            row |= {f"result_{extra}_us": rng.uniform(0, 1000) for extra in range(12)}
            rows.append(row | {"within": None, "seed": number, "cycles": 1000})
    return rows
