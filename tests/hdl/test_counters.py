"""Every counter that is too wide to be run over its wrap, and the test that takes it there.

A counter here is a register of 16 bits or more that a clock edge adds to. Narrower ones wrap in ordinary runs; running
indices in memories are completion's alone (`test_completion.py`: widths and first index are parameters of the block).
"""

import ast
from pathlib import Path

import lanikai.hdl
import pytest
from amaranth.hdl import Fragment
from amaranth.hdl._ast import Assign, Concat, Operator, Part, Slice, SwitchValue
from lanikai.hdl.config import LinkConfig, NicConfig, RouterConfig, preset
from lanikai.hdl.nic.nic import Nic
from lanikai.hdl.router.router import Router
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.measurement import Measurement
from lanikai.hdl.traffic.message_node import MessageNode
from lanikai.hdl.traffic.node import TrafficNode
from lanikai.hdl.traffic.rate_server import RateServer

HERE = Path(__file__).parent
LEAST_BITS = 16
OWNED = preset(
    NicConfig,
    "lanai4",
    owners=4,
    completion_queues=2,
    regions=4,
    shadow_windows=True,
    host_dma_queue_entries=4,
    send_queue_entries=4,
    receive_queue_entries=2,
    doorbell="queue",
)
TREE = OWNED.replace(
    rate_structure="tree", pipelined=True, stamp_flows=4, send_queue_order="timestamp", rate_charge="bytes"
)
MANAGED = preset(
    RouterConfig,
    "tiny",
    link=LinkConfig(flit_bits=64, vls=16),
    management=True,
    routing="table",
    activity_counters=True,
    vl_arbiter="table_fast",
)

TAKEN = {
    # Width, or start, is a parameter.
    ("nic/completion.py", "index.eq(index + 1)"): (
        "nic/test_completion.py",
        "test_entry_65536_is_written_at_the_start_of_the_ring",
        "first_index=65536",
    ),
    ("nic/completion.py", "self._now + 1"): (
        "nic/test_completion.py",
        "test_indices_and_ages_go_over_their_wrap",
        "stamp_bits=6",
    ),
    ("nic/rtc.py", "self.ticks + 1"): (
        "nic/test_rtc.py",
        "test_timer_fires_once_at_its_time",
        "256",
    ),
    # The test starts just before the wrap.
    ("nic/completion.py", "self.dropped + 1"): (
        "nic/test_completion.py",
        "test_a_post_that_a_full_queue_holds_is_not_the_next_owners",
        "Nearly(ctx, dut.dropped)",
    ),
    ("nic/doorbell.py", "self.refusals + 1"): (
        "nic/test_doorbell.py",
        "test_queue_keeps_every_doorbell_in_order",
        "Nearly(ctx, dut.refusals)",
    ),
    ("nic/protection.py", "self.violations + 1"): (
        "nic/test_protection.py",
        "test_agrees_with_the_model",
        "Nearly(ctx, g.protection.violations)",
    ),
    ("nic/translation.py", "self.hits + 1"): (
        "nic/test_protection.py",
        "test_a_cached_page_is_used_until_it_is_invalidated",
        "Nearly(ctx, g.translation.hits)",
    ),
    ("nic/translation.py", "self.misses + 1"): (
        "nic/test_protection.py",
        "test_a_cached_page_is_used_until_it_is_invalidated",
        "Nearly(ctx, g.translation.misses)",
    ),
    ("nic/receive_engine.py", "self.crc_errors + 1"): (
        "nic/test_receive_engine.py",
        "test_only_good_packets_end_in_the_buffer",
        "Nearly(ctx, dut.crc_errors)",
    ),
    ("nic/receive_engine.py", "self.length_errors + 1"): (
        "nic/test_receive_engine.py",
        "test_only_good_packets_end_in_the_buffer",
        "Nearly(ctx, dut.length_errors)",
    ),
    ("nic/register_bank.py", "self.refusals + 1"): (
        "nic/test_names.py",
        "test_a_name_of_nothing_is_refused_and_counted",
        "Nearly(ctx, c.nic._registers.refusals)",
    ),
    ("router/router.py", "self.dropped +"): (
        "router/test_router.py",
        "test_what_does_not_begin_with_a_head_is_dropped",
        "Nearly(ctx, router.dropped)",
    ),
}
"""By file and text of the line that counts: the test that goes over the wrap, and what in it says so."""
WITHOUT = {
    (
        "nic/checked_dma.py",
        "wanted.sram_address +",
    ): "an address: the engine goes over the SRAM's end, which wraps",
    ("nic/host_dma.py", "address + beats"): "an address: `test_host_dma.py` goes over the end of its memory",
    (
        "link_restart.py",
        "self.lost + 1",
    ): "not taken there: one more, modulo 2^16, that only the firmware reads",
    ("nic/nic.py", "lost + out"): "not taken there: sums, modulo 2^16, that only the firmware reads",
    ("router/management.py", "count + 1"): "stands still at its end",
    ("router/agent.py", "refused + 1"): "not taken there: one more, modulo 2^32, that only the agent reads",
    ("router/drop_report.py", "lost"): "not taken there: sums, modulo 2^32, that only the agent reads",
    ("router/activity.py", "+"): "not taken there: sums, modulo 2^32, that only the agent reads",
    ("traffic/generator.py", "count + late"): "a run's",
    ("traffic/measurement.py", "control.now + 1"): "a run's",
    ("traffic/measurement.py", "outstanding + births"): "a run's",
    ("traffic/measurement.py", "drained + 1"): "a run's",
    ("traffic/node.py", "sent + 1"): "a run's",
    ("traffic/node.py", "received + 1"): "a run's",
    ("traffic/rate_server.py", "cycle + 1"): "a run's",
    ("traffic/rate_server.py", "self.busy_cycles + 1"): "a run's",
    ("traffic/sink.py", "count + error"): "a run's",
}
"""The others, and why no test takes them there. "A run's" counts once a cycle at most, from the start of a run, in 32
bits or more: 2^32 cycles of a network are a day of simulation."""


def adds(value, target):
    """Whether there is a sum in an expression that reads the signal `target`."""
    if isinstance(value, Operator):
        summed = value.operator == "+" and target in value._rhs_signals()
        return summed or any(adds(operand, target) for operand in value.operands)
    if isinstance(value, Slice | Part):
        return adds(value.value, target)
    if isinstance(value, Concat):
        return any(adds(part, target) for part in value.parts)
    return isinstance(value, SwitchValue) and any(adds(one, target) for _, one in value.cases)


def assigns(statements):
    """The assignments among statements, with those in cases."""
    for statement in statements:
        if isinstance(statement, Assign):
            yield statement
        for case in getattr(statement, "cases", ()):
            yield from assigns(case[1])


def counters(fragment):
    """(File below hdl, line) of what counts in a fragment and in those below it."""
    for domain, statements in fragment.statements.items():
        for one in assigns(statements if domain != "comb" else ()):
            if len(one.lhs) >= LEAST_BITS and any(adds(one.rhs, to) for to in one.lhs._lhs_signals()):
                path, line = one.src_loc
                yield Path(path), line
    for below, _, _ in fragment.subfragments:
        yield from counters(below)


def test_every_wide_counter_is_taken_over_its_wrap_or_named():
    traffic = TrafficConfig()
    blocks = [
        *(Nic(config) for config in (OWNED, TREE, OWNED.replace(processors=2), preset(NicConfig, "iba"))),
        Nic(preset(NicConfig, "tiny", link=LinkConfig(restart=True))),
        *(Router(config) for config in (preset(RouterConfig, "tiny"), MANAGED)),
        *(block(traffic) for block in (TrafficNode, MessageNode, Measurement)),
        RateServer(TREE),
    ]
    root = Path(lanikai.hdl.__file__).parent.resolve()
    found = {place for block in blocks for place in counters(Fragment.get(block, None))}
    used = set()
    for path, line in sorted(found):
        if not path.resolve().is_relative_to(root):
            continue  # Amaranth's own
        name, text = path.resolve().relative_to(root).as_posix(), path.read_text().splitlines()[line - 1]
        fits = [key for key in TAKEN | WITHOUT if key[0] == name and key[1] in text]
        assert len(fits) == 1, f"hdl/{name}:{line}: {text.strip()}: say which test takes it over its wrap"
        used.update(fits)
    assert used == (TAKEN | WITHOUT).keys()


@pytest.mark.parametrize(("file", "test", "says"), TAKEN.values())
def test_the_named_test_is_there_and_goes_there(file, test, says):
    module = ast.parse((HERE / file).read_text())
    bodies = [ast.unparse(node) for node in ast.walk(module) if getattr(node, "name", None) == test]
    assert len(bodies) == 1 and says in bodies[0]
