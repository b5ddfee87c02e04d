"""The watchdog: counting in RTL, and a real hang of a cluster."""

import pytest
from amaranth.sim import Simulator
from lanikai.sim.cluster import ENTRY, cluster_spec
from lanikai.sim.errors import SimulationError
from lanikai.sim.run import run
from lanikai.sim.watchdog import Probe, Watchdog


def test_counts_quiet_cycles():
    """It fires after `limit` quiet cycles in a row, not before, and stays; with limit 0 never."""
    watchdog = Watchdog()

    async def body(ctx):
        ctx.set(watchdog.limit, 5)
        for _ in range(3):
            await ctx.tick().repeat(4)
            assert not ctx.get(watchdog.fired)
            ctx.set(watchdog.activity, 1)
            await ctx.tick()
            ctx.set(watchdog.activity, 0)
        await ctx.tick().repeat(4)
        assert not ctx.get(watchdog.fired)
        await ctx.tick()
        assert ctx.get(watchdog.fired)
        ctx.set(watchdog.activity, 1)
        await ctx.tick()
        assert ctx.get(watchdog.fired)

    simulator = Simulator(watchdog)
    simulator.add_clock(1e-6)
    simulator.add_testbench(body)
    simulator.run()


def test_off():
    """A limit of 0 never fires."""
    watchdog = Watchdog()

    async def body(ctx):
        await ctx.tick().repeat(100)
        assert not ctx.get(watchdog.fired)

    simulator = Simulator(watchdog)
    simulator.add_clock(1e-6)
    simulator.add_testbench(body)
    simulator.run()


def test_probe_text():
    """Bits by name, numbers as numbers."""
    probe = Probe("router0", "input_occupied", ("port 0 VL 0", "port 0 VL 1", "port 1 VL 0"))
    assert probe.text(0b101) == "port 0 VL 0, port 1 VL 0"
    assert probe.text(0) == "none"
    assert Probe("nic0", "credits").text(17) == "17 (0x11)"


@pytest.mark.usefixtures("points")
@pytest.mark.xdist_group("tiny")
def test_hang_is_found_and_told(tiny, tiny_config, tmp_path):
    """A packet for a card that takes none: after `watchdog_cycles` the run ends with what waits where, and
    the log has every block's state."""
    config = tiny_config.replace(watchdog_cycles=500)
    with pytest.raises(SimulationError) as caught:
        run(tiny, ENTRY, cluster_spec(config, "sim_points:hang", {"bytes": 64}), out_dir=tmp_path)
    message = str(caught.value)
    assert message.startswith("nothing has moved for 500 cycles (now cycle ")
    assert "waiting: network.router0 input_occupied: port 0 VL 0" in message
    assert "\n" not in message
    log = (tmp_path / "simulation.log").read_text()
    for line in ("watchdog: state in cycle ", "network.router0:", "nic0:", "nic1:", "host1:", "  bus_use: 0"):
        assert line in log
