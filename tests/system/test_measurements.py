"""Everything that a traffic network is measured by, against a recount from the list of packets or another counter."""

from __future__ import annotations

import subprocess
import sys

import polars
import pytest
from lanikai.hdl.config import ConfigError
from lanikai.sim.energy.activity import Activity, activity_of_packets
from lanikai.sim.errors import SimulationError
from lanikai.sim.experiments.measure.traffic_tables import PERCENTILES, percentile, traffic_tables
from lanikai.sim.experiments.network_load import NetworkLoad, NetworkLoadParameters
from lanikai.sim.run import run

pytestmark = pytest.mark.xdist_group("watched network")
WINDOW = 4000
SETTINGS = {"network": "mesh2x2", "allocator": "separable", "vls": 2, "packet_flits": 5}
PARAMETERS = NetworkLoadParameters(
    **SETTINGS, class_shares=[0.25, 0.75], count_links=True, series_cycles=300, packet_list=True
)
SYSTEM = PARAMETERS.system("separable")
NETWORK = SYSTEM.network
WATCH = {"links": True, "series_cycles": 300, "packets": True}


@pytest.fixture(scope="module")
def model():
    return SYSTEM.build()


def point(model, folder, *, load=0.5, watch=WATCH, system=SYSTEM):
    spec = {
        "classes": [setup.model_dump(mode="json") for setup in PARAMETERS.classes(load)],
        "warmup_cycles": 1000,
        "window_cycles": WINDOW,
        "limit_cycles": 600,
        "watch": watch,
    }
    entry, whole = system.job("support.sim.watch_points:settled", spec)
    return run(model, entry, whole, out_dir=folder, seed=3).value


@pytest.fixture(scope="module")
def measured(model, tmp_path_factory):
    return point(model, tmp_path_factory.mktemp("point"))


@pytest.fixture(scope="module")
def tables(measured):
    made = traffic_tables(measured, network=NETWORK, traffic=SYSTEM.traffic)
    return {name: polars.DataFrame(rows, infer_schema_length=None) for name, rows in made.items()}


def hops(packets):
    """The flits that packets bring to each port on their ways."""
    found = [[0] * NETWORK.router.ports for _ in range(NETWORK.routers)]
    for packet in packets:
        for router, port in NETWORK.path(packet["source"], packet["destination"], vl=packet["vl"]):
            found[router][port] += packet["flits"]
    return found


def test_the_list_has_every_packet_and_links_carry_their_flits_times_hops(measured, tables):
    """All links together carry the sum of flits times hops: of every packet since reset, as nothing is under way."""
    packets = tables["packets"].to_dicts()
    assert len(packets) > 1000 and set(tables["packets"]["flits"]) == {5}
    assert measured["since_reset"] == hops(packets)
    born, arrived, late = (
        tables["packets"][f"{name}"] for name in ("born_cycle", "arrived_cycle", "latency_cycles")
    )
    assert (arrived - born == late).all()
    assert (tables["packets"]["in_window"] == ((born >= 0) & (born < WINDOW)).cast(polars.Int64)).all()


def test_histograms_are_those_of_the_packets(tables):
    for row in tables["latency"].to_dicts():
        mine = tables["packets"].filter(
            (polars.col("in_window") == 1)
            & (polars.col("class") == row["class"])
            & (polars.col("destination") == row["destination"])
            & polars.col("latency_cycles").is_between(row["first_cycles"], row["last_cycles"])
        )
        assert len(mine) == row["packets"] > 0
    assert tables["latency"]["packets"].sum() == tables["packets"]["in_window"].sum()


def test_percentiles_are_those_of_the_packets(tables):
    counted = {of: len(rows) for (of,), rows in tables["percentiles"].group_by("of")}
    assert counted == {"all": 1, "class": 2, "destination": 8, "source": 8}
    for row in tables["percentiles"].to_dicts():
        wanted = polars.col("in_window") == 1
        if row["class"] is not None:
            wanted &= polars.col("class") == row["class"]
        if row["node"] is not None:
            wanted &= polars.col(row["of"]) == row["node"]
        late = tables["packets"].filter(wanted)["latency_cycles"].sort()
        assert row["packets"] == len(late)
        assert row["latency_mean_cycles"] == pytest.approx(late.mean(), rel=1e-12)
        assert (row["latency_min_cycles"], row["latency_max_cycles"]) == (late.min(), late.max())
        for name, fraction in PERCENTILES.items():
            exact = percentile({value: int((late == value).sum()) for value in late.unique()}, fraction)
            found = row[f"latency_{name}_cycles"]
            assert (
                found == exact if exact < 64 or row["of"] == "source" else exact <= found <= exact * 33 / 32
            )


def test_links_to_nodes_carry_what_sinks_count_in_the_window(measured, tables):
    links = tables["links"]
    assert len(links) == 2 * 4 + 8
    for node, counts in enumerate(measured["counts"]):
        (arrived,) = links.filter((polars.col("to") == "node") & (polars.col("to_number") == node))["flits"]
        assert arrived == sum(one["accepted_flits"] for one in counts)
    assert list(links["use"]) == pytest.approx([flits / WINDOW for flits in links["flits"]])


def test_routers_pass_on_what_they_are_given_in_the_window(tables):
    """All that comes in goes out again, but for what the buffers hold at the window's ends."""
    links = tables["links"]
    for router in range(4):
        came = links.filter((polars.col("to") == "router") & (polars.col("to_number") == router))[
            "flits"
        ].sum()
        went = links.filter((polars.col("from") == "router") & (polars.col("from_number") == router))[
            "flits"
        ].sum()
        assert came > 2000 and abs(came - went) <= 5 * 2 * 20


def test_time_series_are_those_of_the_packets_and_add_up_to_the_window(measured, tables):
    series = tables["time_series"]
    assert [row["first_cycle"] for row in series.filter(polars.col("class") == 0).to_dicts()] == [
        *range(-1000, 0, 300),
        *range(0, WINDOW, 300),
    ]
    for row in series.to_dicts():
        end = row["first_cycle"] + row["cycles"]
        late = tables["packets"].filter(
            (polars.col("class") == row["class"])
            & polars.col("arrived_cycle").is_between(row["first_cycle"], end - 1)
        )["latency_cycles"]
        assert row["packets"] == len(late)
        assert row["latency_mean_cycles"] == (pytest.approx(late.mean(), rel=1e-12) if len(late) else None)
    window = series.filter(polars.col("first_cycle") >= 0)
    assert window.filter(polars.col("class") == 0)["cycles"].sum() == WINDOW
    for number in range(2):
        flits = window.filter(polars.col("class") == number)["accepted_flits"].sum()
        assert flits == sum(node[number]["accepted_flits"] for node in measured["counts"])


def test_energy_is_that_of_the_packets(measured):
    """Routers' events in the window are those of the packets that arrived in it, but for the cut at its ends."""
    packets = [
        (source, destination, flits)
        for source, destination, _, flits, _, _, arrived, _, _ in measured["packets"]
        if 0 <= arrived < WINDOW
    ]
    expected = Activity.total(activity_of_packets(NETWORK, packets))
    found = Activity.from_list(measured["activity"])
    for name, count in vars(expected).items():
        assert getattr(found, name) == pytest.approx(count, rel=0.02)
    assert found.link_flits == sum(measured["links"][router][port] for router, port in NETWORK.neighbours)


def test_watching_changes_nothing_of_what_is_measured(model, measured, tmp_path):
    bare = point(model, tmp_path, watch={"packets": True})
    assert bare["counts"] == measured["counts"] and bare["packets"] == measured["packets"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"series_cycles": 30_000}, "series_cycles = 30000: at most the 20000 cycles that are measured"),
        ({"series_cycles": 1}, "series_cycles = 1: at least 4, as a time series has at most 10000 windows"),
    ],
)
def test_windows_that_cannot_be_are_refused_in_a_line(settings, words):
    with pytest.raises(ConfigError, match=f"^{words}$"):
        NetworkLoad().points(NetworkLoadParameters(**SETTINGS, **settings), "quick")


def test_pipelined_routers_have_no_counters():
    with pytest.raises(
        ConfigError, match="pipelined = True, count_links = True: pipelined routers have no counters"
    ):
        NetworkLoadParameters(network="mesh2x2", allocator="separable", pipelined=True, count_links=True)


def test_a_system_that_shows_nothing_is_not_watched(tmp_path):
    plain = NetworkLoadParameters(**SETTINGS, class_shares=[0.25, 0.75]).system("separable")
    with pytest.raises((SimulationError, ConfigError), match="watched = False: sinks show nothing"):
        point(plain.build(), tmp_path, watch={"packets": True}, system=plain)


def test_the_command_writes_tables_and_maps(tmp_path):
    arguments = [f"--set={key}={value}" for key, value in SETTINGS.items()]
    arguments += ["--set=class_shares=[0.25,0.75]", "--set=count_links=true", "--set=series_cycles=1000"]
    arguments += ["--set=packet_list=true", "--set=loads=[0.3]", "--out", "r"]
    command = [
        sys.executable,
        "-c",
        "from lanikai.sim.cli.program import main; main()",
        "run",
        "network-load",
    ]
    done = subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    tables = {path.stem: polars.read_parquet(path) for path in (tmp_path / "r" / "tables").glob("*.parquet")}
    assert sorted(tables) == ["buffers", "latency", "links", "packets", "percentiles", "time_series"]
    for name, frame in tables.items():
        assert frame.columns[:2] == ["point", "seed"]
        assert polars.read_json(tmp_path / "r" / "tables" / f"{name}.json").columns == frame.columns
    for name in ("links", "time_series"):
        assert (tmp_path / "r" / "plots" / f"{name}.png").stat().st_size > 10_000


def test_buffers_hold_flits_where_links_bring_them(model, tmp_path):
    """Only some links are used: behind the others no look finds a flit, and behind those some do."""
    neighbours = NetworkLoadParameters(**SETTINGS, class_shares=[0.25, 0.75], pattern="neighbour")
    spec = {
        "classes": [setup.model_dump(mode="json") for setup in neighbours.classes(0.6)],
        **{"warmup_cycles": 1000, "window_cycles": WINDOW, "limit_cycles": 600, "watch": {"links": True}},
    }
    entry, whole = SYSTEM.job("support.sim.watch_points:settled", spec)
    found = run(model, entry, whole, out_dir=tmp_path, seed=3).value
    made = traffic_tables(found, network=NETWORK, traffic=SYSTEM.traffic)
    brought = {
        (row["to_number"], row["to_port"]): row["flits"] for row in made["links"] if row["to"] == "router"
    }
    uses = {(row["router"], row["port"]): row["input_use"] for row in made["buffers"]}
    assert uses.keys() == brought.keys() and 0 in brought.values()
    for place, flits in brought.items():
        assert (0 < uses[place] < 1) if flits else uses[place] == 0
    assert {row["looks"] for row in made["buffers"]} == {-(-WINDOW // 15)}
    sent = {
        (row["from_number"], row["from_port"]): row["flits"]
        for row in made["links"]
        if row["from"] == "router"
    }
    for row in made["buffers"]:
        assert (row["output_use"] > 0) == (sent[row["router"], row["port"]] > 0)
        assert 0 <= row["blocked"] < 1
