"""Mixed traffic without the simulator: what a mix refuses, the streams of hosts, and ledgers that grant everything."""

from itertools import islice

import pytest
from lanikai.hdl.config import ConfigError
from lanikai.sim.experiments.qos.messages import until
from lanikai.sim.experiments.qos.mix import ADMISSION, STREAM_UNITS, Mix, mixed_network, on_off_peak
from lanikai.sim.experiments.qos.sources import on_off_rate
from lanikai.sim.experiments.qos.streams import granted, plan_streams

LINK = ADMISSION.link_units


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"load": 0}, "Mix.load = 0: must be above 0 and at most 1"),
        ({"stream_units": (0,)}, "Mix: stream_units: 0: 1 to 255"),
        ({"credits": "x"}, "Mix: credits = 'x': one of none, global, separate, quadrant"),
        (
            {"admission_config": ADMISSION.replace(real_time_vls=tuple(range(15)))},
            "Mix: admission_config.real_time_vls: they leave no VL for best effort",
        ),
    ],
)
def test_what_cannot_be_sent_is_refused(changes, message):
    with pytest.raises(ConfigError) as error:
        Mix(**{"load": 0.5} | changes)
    assert str(error.value) == message


def test_a_mix_is_the_same_after_it_was_a_spec():
    mix = Mix(load=0.6, setup=(((4, 0, 21),),), admission=False)
    assert Mix(**mix.spec()) == mix


@pytest.mark.parametrize("load", [0.4, 0.8])
def test_streams_of_a_host_come_to_its_part_of_the_load(load):
    mix = Mix(load=load)
    for streams in plan_streams(mix, nodes=8, seed=3):
        # One more or one less would be no nearer: within half of the largest.
        assert sum(one.units for one in streams) == pytest.approx(
            0.8 * load * LINK, abs=max(STREAM_UNITS) / 2
        )
        names = {(one.destination, one.flow) for one in streams}
        assert len(names) == len(streams) and all(one.destination != one.source for one in streams)
        assert {one.vl for one in streams} <= set(range(11)) and all(one.peak >= one.units for one in streams)


def test_streams_depend_on_the_seed_and_not_on_the_controls():
    def first(**changes):
        streams = plan_streams(
            Mix(load=0.5, **{"frame_cycles": 5000} | changes), nodes=4, seed=changes.pop("seed", 1)
        )
        return [(one.destination, one.vl, one.units, list(islice(one.messages(), 20))) for one in streams[2]]

    assert first() == first(admission=False, credits="global")
    assert first() != [
        (one.destination, one.vl, one.units, list(islice(one.messages(), 20)))
        for one in plan_streams(Mix(load=0.5, frame_cycles=5000), nodes=4, seed=2)[2]
    ]


@pytest.mark.parametrize("real_time", ["mpeg", "on_off"])
def test_streams_have_the_rates_that_are_asked_for(real_time):
    mix = Mix(load=0.9, real_time=real_time, stream_units=(100,), frame_cycles=20_000)
    cycles, streams = 4_000_000, plan_streams(mix, nodes=2, seed=1)[0]
    found = sum(one.flits for stream in streams for one in until(stream.messages(), cycles)) / cycles
    # 200 frames or ON times of 7 streams: frames differ by their own size and more.
    assert found == pytest.approx(sum(one.units for one in streams) / LINK, rel=0.15)


def test_the_peak_rate_of_an_on_off_stream_is_that_of_its_mean_rate():
    times = {"on_cycles": 10_000, "off_cycles": 10_000}
    peak = on_off_peak(rate=0.02, **times)
    assert on_off_rate(peak_rate=peak, **times) == pytest.approx(0.02)
    assert on_off_peak(rate=0.001, **times) is None
    with pytest.raises(ConfigError, match=r"^stream_units: 1: no ON/OFF stream with on_cycles = 10000 and"):
        plan_streams(Mix(load=0.5, real_time="on_off", stream_units=(1,)), nodes=2, seed=1)


def test_every_stream_is_granted_on_every_link_of_its_way():
    """Sums of a link may be above its bandwidth: nobody refuses."""
    network = mixed_network("mesh2x2").network
    mix = Mix(load=1, real_time_share=1, stream_units=(200,), frame_cycles=20_000)
    streams = plan_streams(mix, nodes=4, seed=1)
    streams[0][0].admitted = False
    routers, hosts = granted(mix, network, streams)
    admitted = [one for node in streams for one in node if one.admitted]
    units = sum(one.units for one in admitted)
    assert sum(host.sent[0].used for host in hosts) == units
    into = sum(routers[router].received[port].used for router, port in network.nodes)
    out = sum(routers[router].sent[port].used for router, port in network.nodes)
    assert into == out == units
    hops = sum(len(network.path(one.source, one.destination)) for one in admitted)
    assert sum(sums.used for ledger in routers for sums in ledger.sent) == 200 * hops
    assert {one.vl for one in admitted} == {
        vl for host in hosts for vl in range(15) if host.sent[0].units[vl]
    }
