"""The writes that an agent must not make into a router: refused by name before anything is written."""

import asyncio

import pytest
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.sim.errors import SimulationError
from lanikai.sim.models.router_agent import (
    RouterAgent,
    check_control_packet,
    check_forwarding_table,
    check_tables,
)

FOUR = RouterConfig(link=LinkConfig(vls=4), ports=3, vl_arbiter="table_fast", vl_table_entries=2)
ALL = FOUR.replace(link=LinkConfig(vls=16))
GOOD = {"high": [(0, 255), (3, 0)], "low": [(1, 1)], "limit": 0, "port": 2}


@pytest.mark.parametrize(
    ("config", "changes", "message"),
    [
        (FOUR, {"high": [(0, 1), (4, 1)]}, "VL tables: high, entry 1: VL 4: VLs are 0 to 3"),
        (FOUR, {"low": [(-1, 1)]}, "VL tables: low, entry 0: VL -1: VLs are 0 to 3"),
        (FOUR, {"low": [(1, 256)]}, "VL tables: low, entry 0: weight 256: 0 to 255"),
        (FOUR, {"high": [(0, -1)]}, "VL tables: high, entry 0: weight -1: 0 to 255"),
        (FOUR, {"low": [(1, 1)] * 3}, "VL tables: low has 3 entries: at most 2"),
        (FOUR, {"limit": 256}, "VL tables: limit = 256: 0 to 255"),
        (FOUR, {"port": 3}, "VL tables: port 3: ports are 0 to 2"),
        (
            ALL,
            {"high": [(15, 1)]},
            "VL tables: high, entry 0: VL 15 carries control packets alone, and is in no table",
        ),
    ],
)
def test_bad_tables_are_refused_by_name(config, changes, message):
    check_tables(config, **GOOD)
    with pytest.raises(ConfigError) as error:
        check_tables(config, **GOOD | changes)
    assert str(error.value) == message


def test_bad_forwarding_tables_are_refused_by_name():
    config = FOUR.replace(routing="table", forwarding_entries=3)
    check_forwarding_table(config, [0, -1, 2])
    with pytest.raises(ConfigError) as error:
        check_forwarding_table(config, [0, 3])
    assert str(error.value) == "forwarding table, node 1: port 3: ports are 0 to 2, -1 for none"
    with pytest.raises(ConfigError) as error:
        check_forwarding_table(config, [0] * 4)
    assert str(error.value) == "forwarding table has 4 rows: at most 3"


@pytest.mark.parametrize("flits", [2, 7, 32])
def test_bad_control_packets_are_refused_by_name(flits):
    config = RouterConfig(link=LinkConfig(vls=16, flit_bits=32), management=True, management_flits=flits)
    check_control_packet(config, [0xFFFFFFFF] * flits)
    for packet, message in (
        (
            [1] * (flits + 1),
            f"control packet of {flits + 1} flits: 1 to {flits} (RouterConfig.management_flits)",
        ),
        ([], f"control packet of 0 flits: 1 to {flits} (RouterConfig.management_flits)"),
        ([0, 1 << 32], "control packet, flit 1: 0x100000000: at most 32 bits"),
    ):
        with pytest.raises(ConfigError) as error:
            check_control_packet(config, packet)
        assert str(error.value) == message


def test_send_refuses_before_anything_is_written():
    """The test has no simulation: an access would fail."""
    agent = object.__new__(RouterAgent)
    agent._config = RouterConfig(link=LinkConfig(vls=16), management=True, management_flits=4)
    sending = agent.send([1] * 5)
    with pytest.raises(ConfigError, match=r"^control packet of 5 flits: 1 to 4"):
        sending.send(None)


def test_a_packet_that_never_leaves_ends_the_wait_of_the_next():
    """Its port's control VL stands still; the wait has a bound."""

    class Clock:
        cycle = 0

    agent = object.__new__(RouterAgent)
    agent._config = RouterConfig(link=LinkConfig(vls=16), management=True, management_flits=4)
    agent._clock, agent._router = Clock(), 3

    async def read(name):
        agent._clock.cycle += 7
        return {"busy": 1}

    agent.read = read
    with pytest.raises(
        SimulationError, match=r"^router 3: the control packet before has not left for 100 cycles: nobody"
    ):
        asyncio.run(agent.send([1], timeout_cycles=100))
    assert 100 <= agent._clock.cycle <= 110
