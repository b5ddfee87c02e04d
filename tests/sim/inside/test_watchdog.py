"""The watchdog: counting in RTL, a real hang of a cluster, messages that are never delivered."""

import re
from types import SimpleNamespace

import pytest
from amaranth.sim import Simulator
from lanikai.sim.errors import SimulationError
from lanikai.sim.inside.deliveries import quiet_cycles
from lanikai.sim.inside.watchdog import WATCHDOG_BITS, Probe, Watchdog
from lanikai.sim.run import run


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


def test_quiet_cycles_before_it_is_on_do_not_count():
    """A limit that comes after more quiet cycles than it allows still fires, after as many again. A limit that comes
    down below the count fires at once."""
    for before, limit in ((50, 5), (1, 40)):
        watchdog = Watchdog()

        async def body(ctx, watchdog=watchdog, before=before, limit=limit):
            await ctx.tick().repeat(before)
            assert ctx.get(watchdog.left) == (1 << WATCHDOG_BITS) - 1
            ctx.set(watchdog.limit, limit)
            await ctx.tick().repeat(limit - 1)
            assert not ctx.get(watchdog.fired) and ctx.get(watchdog.left) == 0
            await ctx.tick()
            assert ctx.get(watchdog.fired)

        simulator = Simulator(watchdog)
        simulator.add_clock(1e-6)
        simulator.add_testbench(body)
        simulator.run()

    watchdog = Watchdog()

    async def lower(ctx):
        ctx.set(watchdog.limit, 100)
        await ctx.tick().repeat(50)
        ctx.set(watchdog.limit, 20)
        assert ctx.get(watchdog.left) == 0
        await ctx.tick()
        assert ctx.get(watchdog.fired)

    simulator = Simulator(watchdog)
    simulator.add_clock(1e-6)
    simulator.add_testbench(lower)
    simulator.run()


def test_probe_text():
    """Bits by name, numbers as numbers."""
    probe = Probe("router0", "input_occupied", ("port 0 VL 0", "port 0 VL 1", "port 1 VL 0"))
    assert probe.text(0b101) == "port 0 VL 0, port 1 VL 0"
    assert probe.text(0) == "none"
    assert Probe("nic0", "credits").text(17) == "17 (0x11)"


@pytest.mark.xdist_group("tiny")
def test_hang_is_found_and_told(tiny, tiny_config, tmp_path):
    """A packet is for a card that takes none. After `watchdog_cycles` the run ends with the places where packets wait,
    and the log has every block's state."""
    config = tiny_config.replace(watchdog_cycles=500)
    with pytest.raises(SimulationError) as caught:
        run(tiny, *config.job("support.sim.sim_points:hang", {"bytes": 64}), out_dir=tmp_path)
    message = str(caught.value)
    assert message.startswith("nothing has moved for 500 cycles (now cycle ")
    assert "waiting: network.router0 input_occupied: port 0 VL 0" in message
    assert "\n" not in message
    log = (tmp_path / "simulation.log").read_text()
    for line in ("watchdog: state in cycle ", "network.router0:", "nic0:", "nic1:", "host1:", "  bus_use: 0"):
        assert line in log


@pytest.mark.xdist_group("tiny")
def test_a_message_that_is_never_taken_ends_the_run(tiny, tiny_config, tmp_path):
    """A port has no receive buffers. Its message is refused and sent again for ever, so the network is never quiet. The
    run ends, and says which message waits and for what."""
    config = tiny_config.replace(delivery_cycles=20_000, watchdog_cycles=15_000)
    with pytest.raises(SimulationError) as caught:
        run(
            tiny,
            *config.job("support.sim.sim_points:no_receive_buffer", {}),
            out_dir=tmp_path,
        )
    message = str(caught.value)
    found = re.match(
        r"nothing has been delivered for (\d+) cycles, though messages wait \(now cycle ", message
    )
    assert found and 20_000 <= int(found[1]) < 20_100
    assert "node 0 port 0: sends 200 bytes from port 0 of node 0 to port 0 of node 1, since cycle " in message
    # Where in its retries it stands does not matter.
    flow = r"flow 0 \(port 0 to port 0 of node 1, low\): [01] sendable, [01] awaiting acknowledgement"
    assert re.search(f"node 0 {flow}", message)
    assert "\n" not in message
    log = (tmp_path / "simulation.log").read_text()
    for line in (
        "nic1:",
        "gm firmware of node 0:",
        "  recv waits for ",
        "  port 0: receive tokens 0 low, 0 high; 0 messages being received; 1 events told",
        "  to node 1, port 0 to 0, low: next packet ",
        "gm library of node 1:",
        "  port 0: open; free tokens: 4 of 4 to send, 8 of 8 to receive; 0 messages not taken",
        "    1 wait to receive",
    ):
        assert line in log


@pytest.mark.xdist_group("tiny")
def test_the_limit_ends_the_run(tiny, tiny_config, tmp_path):
    """`limit_cycles` ends any movement, here the same retries."""
    config = tiny_config.replace(limit_cycles=10_000, watchdog_cycles=15_000)
    with pytest.raises(
        SimulationError, match=r"^the limit of 10000 cycles is reached \(now cycle 10000\); wait"
    ):
        run(
            tiny,
            *config.job("support.sim.sim_points:no_receive_buffer", {}),
            out_dir=tmp_path,
        )


def test_who_waits_for_nothing_is_not_stalled():
    """Quiet cycles count from the last delivery anywhere, and only while something is pending."""
    idle = SimpleNamespace(advanced_cycle=90, pending=0)
    busy = SimpleNamespace(advanced_cycle=40, pending=1)
    assert quiet_cycles([idle, idle], 100) == 0
    assert quiet_cycles([busy], 100) == 60
    assert quiet_cycles([busy, idle], 100) == 10
