"""What an agent must not write into a router: refused by name before anything is written."""

import pytest
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.sim.router_agent import check_forwarding_table, check_tables

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
