"""Every counter of the hardware: the test that takes it over its wrap, or why it cannot get there.

A counter is a register that a clock edge adds to, or a memory whose rows are written with what follows from them.
Counters are found by elaboration of blocks that have every feature, so that a new one has to be named here.
"""

import ast
import re
from pathlib import Path

import lanikai.hdl
import pytest
from amaranth.hdl import Fragment
from lanikai.hdl.config import LinkConfig, NicConfig, RouterConfig, preset
from lanikai.hdl.nic.dma.bus_fence import UNDER_WAY_BITS
from lanikai.hdl.nic.nic import Nic
from lanikai.hdl.router.allocators import ALLOCATORS
from lanikai.hdl.router.router import Router
from lanikai.hdl.traffic.config import TrafficConfig
from lanikai.hdl.traffic.measurement import MOST_MEASURED_CYCLES, MOST_WARMUP_CYCLES, Measurement
from lanikai.hdl.traffic.message_node import MessageNode
from lanikai.hdl.traffic.node import TrafficNode
from lanikai.hdl.traffic.packet import BORN_BITS
from lanikai.hdl.traffic.rate_server import RateServer
from lanikai.hdl.vl_arbiter.registry import VL_ARBITERS, make_vl_arbiter
from lanikai.sim.systems.rate_unit import MOST_CYCLES, SETUP_CYCLES, SETUP_TRIES
from support.hdl import adapter_counters
from support.hdl.counter_search import counting_memories, counting_registers

HERE = Path(__file__).parent
HDL = Path(lanikai.hdl.__file__).parent.resolve()
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
    receive_wait_cycles=1000,
    doorbell="queue",
)
TREE = OWNED.replace(
    rate_structure="tree", pipelined=True, stamp_flows=4, send_queue_order="timestamp", rate_charge="bytes"
)
BUFFERED = preset(
    NicConfig,
    "tiny",
    link=LinkConfig(flit_bits=64, vls=4, restart=True),
    vl_packets=2,
    send_queue_entries=2,
    input_buffer_flits=40,
    mtu_bytes=64,
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
    ("nic/owners/completion.py", "index.eq(index + 1)"): (
        "nic/owners/test_completion.py",
        "test_entry_65536_is_written_at_the_start_of_the_ring",
        "first_index=65536",
    ),
    ("nic/owners/completion.py", "self._now + 1"): (
        "nic/owners/test_completion.py",
        "test_indices_and_ages_go_over_their_wrap",
        "stamp_bits=6",
    ),
    ("nic/rtc.py", "self.ticks + 1"): (
        "nic/test_rtc.py",
        "test_timer_fires_once_at_its_time",
        "256",
    ),
    # The test starts just before the wrap.
    ("nic/owners/completion.py", "self.dropped + 1"): (
        "nic/owners/test_completion.py",
        "test_a_post_that_a_full_queue_holds_is_not_the_next_owners",
        "Nearly(ctx, dut.dropped)",
    ),
    ("nic/doorbell.py", "self.refusals + 1"): (
        "nic/test_doorbell.py",
        "test_queue_keeps_every_doorbell_in_order",
        "Nearly(ctx, dut.refusals)",
    ),
    ("nic/owners/protection.py", "self.violations + 1"): (
        "nic/owners/test_protection.py",
        "test_agrees_with_the_model",
        "Nearly(ctx, g.protection.violations)",
    ),
    ("nic/owners/translation.py", "self.hits + 1"): (
        "nic/owners/test_protection.py",
        "test_a_cached_page_is_used_until_it_is_invalidated",
        "Nearly(ctx, g.translation.hits)",
    ),
    ("nic/owners/translation.py", "self.misses + 1"): (
        "nic/owners/test_protection.py",
        "test_a_cached_page_is_used_until_it_is_invalidated",
        "Nearly(ctx, g.translation.misses)",
    ),
    ("nic/dma/receive_engine.py", "self.crc_errors + 1"): (
        "nic/dma/test_receive_engine.py",
        "test_only_good_packets_end_in_the_buffer",
        "Nearly(ctx, dut.crc_errors)",
    ),
    ("nic/dma/receive_engine.py", "self.length_errors + 1"): (
        "nic/dma/test_receive_engine.py",
        "test_only_good_packets_end_in_the_buffer",
        "Nearly(ctx, dut.length_errors)",
    ),
    ("nic/dma/receive_engine.py", "self.discarded + 1"): (
        "nic/dma/test_receive_engine.py",
        "test_without_a_buffer_packets_wait_so_long_then_are_thrown_away_whole",
        "Nearly(ctx, dut.discarded, 3)",
    ),
    ("register_bank.py", "self.refusals + 1"): (
        "nic/test_names.py",
        "test_a_name_of_nothing_is_refused_and_counted",
        "Nearly(ctx, c.nic.registers.refusals)",
    ),
    ("router/router.py", "self.dropped +"): (
        "router/test_router.py",
        "test_what_does_not_begin_with_a_head_is_dropped",
        "Nearly(ctx, router.dropped)",
    ),
    ("nic/queues/dma_queue.py", "self.refused + 1"): (
        "nic/queues/test_dma_queue.py",
        "run",
        "Nearly(ctx, dut.refused, 3)",
    ),
    ("nic/queues/dma_queue.py", "self.ended_count + self.ended"): (
        "nic/queues/test_dma_queue.py",
        "run",
        "Nearly(ctx, dut.ended_count, 9)",
    ),
    ("nic/queues/stamped_queue.py", "self.refused + 1"): (
        "nic/queues/test_stamped_queue.py",
        "test_the_order_is_that_of_virtual_clock",
        "Nearly(b.ctx, b.dut.refused)",
    ),
    ("nic/optional/link_blocks.py", "lost + out"): (
        "nic/link_port/test_link_reset.py",
        "test_packets_go_on_when_one_of_two_cards_is_reset_under_traffic",
        "Nearly(ctx, pair.cards[SENDER].block(LinkRestart).lost_out)",
    ),
    ("link_restart.py", "self.cuts + sum("): (
        "test_link_restart.py",
        "test_packets_that_are_cut_on_their_way_out_are_counted_over_the_wrap",
        "Nearly(ctx, dut.cuts, 2)",
    ),
    ("nic/link_port/registered_port.py", "self.cuts_out + cuts"): (
        "test_link_restart.py",
        "test_packets_that_are_cut_in_packet_buffers_are_counted_over_the_wrap",
        "Nearly(ctx, dut.cuts_out)",
    ),
    ("nic/link_port/vl_port.py", "self.cuts_out + sum("): (
        "test_link_restart.py",
        "test_packets_that_are_cut_in_packet_buffers_are_counted_over_the_wrap",
        "Nearly(ctx, dut.cuts_out)",
    ),
    ("link_restart.py", "self.cuts + 1"): (
        "test_link_restart.py",
        "test_packets_that_are_cut_on_their_way_in_and_lost_flits_are_counted_over_the_wrap",
        "Nearly(ctx, dut.cuts, 2)",
    ),
    ("link_restart.py", "self.lost + 1"): (
        "test_link_restart.py",
        "test_packets_that_are_cut_on_their_way_in_and_lost_flits_are_counted_over_the_wrap",
        "Nearly(ctx, dut.lost, 3)",
    ),
    ("router/agent.py", "self._refused + 1"): (
        "router/test_management.py",
        "test_what_names_nothing_is_refused_and_counted",
        "Nearly(bench.ctx, bench.router._agent_port._refused, 3)",
    ),
    ("router/drop_report.py", "self.lost + sum("): (
        "router/test_management.py",
        "test_dropped_packets_are_reported_with_their_sender",
        "Nearly(bench.ctx, bench.router._drop_reports.lost)",
    ),
    ("router/release_report.py", "self.lost + sum("): (
        "router/test_release_report.py",
        "test_reports_that_nobody_reads_are_lost_and_counted_and_packets_pass",
        "Nearly(bench.ctx, bench.router._release_reports.lost)",
    ),
    ("router/management.py", "count + 1"): (
        "router/test_management.py",
        "test_a_count_of_flits_stands_still_at_its_end",
        "Nearly(ctx, count, 5)",
    ),
    **{
        ("router/activity.py", f"self.{name} + "): (
            "router/test_management.py",
            "test_activity_counters_go_over_their_wrap",
            f"Nearly(ctx, dut.{name}",
        )
        for name in ("buffer_writes", "buffer_reads", "arbitrations", "crossbar_flits")
    },
    ("router/activity.py", "self.port_flits[p] + "): (
        "router/test_management.py",
        "test_activity_counters_go_over_their_wrap",
        "Nearly(ctx, dut.port_flits[1])",
    ),
    ("traffic/measurement.py", "control.now + 1"): (
        "traffic/test_node.py",
        "test_times_and_counts_go_over_their_wrap",
        "s.ctx.set(s.measurement.control.now, start)",
    ),
    ("traffic/node.py", "sent + 1"): (
        "traffic/test_node.py",
        "test_times_and_counts_go_over_their_wrap",
        "s.ctx.set(s.nodes[node]._sent, packets)",
    ),
    ("traffic/node.py", "received + 1"): (
        "traffic/test_node.py",
        "test_times_and_counts_go_over_their_wrap",
        "s.ctx.set(s.nodes[node]._received, packets)",
    ),
    **{
        ("traffic/credit_return.py", f"{name} + 1"): (
            "traffic/test_sink.py",
            "test_sequence_numbers_go_over_their_wrap",
            "range(259)",
        )
        for name in ("first", "last")
    },
    # Memories.
    ("router/activity.py", "rows = memory.Memory("): (
        "router/test_management.py",
        "test_activity_counters_go_over_their_wrap",
        "Nearly(ctx, dut._rows[1].data[7])",
    ),
    ("traffic/checker.py", "positions = memory.Memory("): (
        "traffic/test_sink.py",
        "test_a_packet_longer_than_any_is_wrong_at_the_first_flit_beyond",
        "max_packet_flits=7",
    ),
    ("traffic/sender.py", "sequences = rows = memory.Memory("): (
        "traffic/test_node.py",
        "test_times_and_counts_go_over_their_wrap",
        "received > 256",
    ),
    ("traffic/message_node.py", "lengths = memory.Memory("): (
        "traffic/test_message_node.py",
        "test_a_message_longer_than_any_is_told_as_an_error_and_not_as_a_short_one",
        "flits=24",
    ),
    ("traffic/arrivals.py", "one + amounts[name]"): (
        "traffic/test_arrivals.py",
        "test_sums_of_each_class_and_the_last_packet",
        "whole >> NARROW[name]",
    ),
    ("traffic/statistics.py", "rows = memory.Memory("): (
        "traffic/test_statistics.py",
        "test_tally_is_its_model",
        "% 2 ** 16",
    ),
    ("nic/owners/completion.py", "depth=self.config.completion_queues"): (
        "nic/owners/test_completion.py",
        "test_entry_65536_is_written_at_the_start_of_the_ring",
        "first_index=65536",
    ),
}
"""Counters by file and text of the line that counts: the test that goes over the wrap, and the words in it that say
so."""

LONGEST = (
    MOST_WARMUP_CYCLES + MOST_MEASURED_CYCLES + TrafficConfig(histogram_sub_bits=5, classes=4).clear_cycles
)
"""Most cycles of a measurement: a count of them adds at most one a cycle from its start on."""
RATE_RUN = MOST_CYCLES + 1024 * (SETUP_CYCLES * SETUP_TRIES)
"""Cycles of a rate unit with as many flows as there can be."""
MOST_BURSTS = next(
    limit.le for limit in NicConfig.model_fields["host_dma_bursts"].metadata if hasattr(limit, "le")
)
QUEUED = 1024 * 16 * 4096
"""Packets in the queues of as many nodes and VLs as there can be."""

BOUNDED = {
    ("nic/dma/bus_fence.py", "under_way + (valid"): (UNDER_WAY_BITS, MOST_BURSTS, "the DMA engine's bursts"),
    ("traffic/generator.py", "count + late"): (32, LONGEST, "one a cycle, cleared at the start"),
    ("traffic/sink.py", "count + error"): (32, LONGEST, "one a flit, cleared at the start"),
    ("traffic/measurement.py", "drained + 1"): (32, 1 << BORN_BITS, "ends at LIMIT"),
    ("traffic/measurement.py", "outstanding + births"): (
        31,
        QUEUED + (1 << 30),
        "queues, and flits in a network of 2^30 places, whose model would take 4 GB and more",
    ),
    ("traffic/rate_server.py", "cycle + 1"): (40, RATE_RUN, "one a cycle"),
    ("traffic/rate_server.py", "self.busy_cycles + 1"): (40, RATE_RUN, "one a cycle"),
    ("traffic/rate_server.py", "kept = memory.Memory("): (
        32,
        MOST_CYCLES // 4,
        "a packet takes 4 cycles at least",
    ),
}
"""Counters by file and text: bits, the most that it can count in any run, and why."""

GUARDED = {
    ("vl_arbiter/two_level.py", "sent + 1"): ("m.Elif(~sent.all())", "stands still at its end"),
    ("vl_arbiter/registered_two_level.py", "sent + 1"): ("m.Elif(~sent.all())", "stands still at its end"),
    ("vl_arbiter/registered_two_level.py", "age + 1"): ("m.Elif(~settled)", "stands still at its end"),
    ("nic/link_port/vl_counters.py", "count + 1"): ("range(most + 1)", "the user must not add beyond it"),
    ("nic/queues/lane_queue.py", "front + 1"): (
        "rows.row_bits",
        "goes round a ring of its range",
    ),
    ("nic/link_port/registered_transmit.py", "front + 1"): (
        "rows.row_bits",
        "goes round a ring of its range",
    ),
    ("nic/link_port/registered_transmit.py", "debt + den - num"): (
        "slot.eq(~sent & (debt < 2 * num))",
        "what a slot's debt, below `num`, becomes by a flit is below `den`",
    ),
    ("nic/link_port/registered_read.py", "row + 1"): ("rows.row_bits", "goes round a ring of its range"),
    ("nic/link_port/registered_read.py", "oldest + 1"): ("rows.row_bits", "goes round a ring of its range"),
    ("vl_arbiter/two_level.py", "left = memory.Memory("): (
        "_charged(before",
        "counts down from a share, to 0",
    ),
    ("vl_arbiter/deficit_round_robin.py", "debts = memory.Memory("): (
        "taken.all(), taken, ",
        "stands still at its end",
    ),
    ("vl_arbiter/tables.py", "count + 1"): (
        "Signal(range(max(rows, 2 << entry_bits, self._patience)))",
        "goes round: a walk each round, `test_rows_are_those_of_the_last_tables`",
    ),
    ("vl_arbiter/tables.py", "unsigned(len(self.share))"): (
        "len(self.share)",
        "sums of 64 weights have their width",
    ),
    ("link.py", "debt + den - num"): ("self.slot.eq(debt < num)", "adds den - num to less than num"),
    ("link_restart.py", "held + 1"): ("m.If(~settled)", "stands still at its end"),
    ("link_restart.py", "quiet + 1"): ("m.Elif(~quiet.all())", "stands still at its end"),
    ("nic/owners/checked_dma.py", "wanted.sram_address +"): (
        "piece.bytes",
        "an address, modulo the space of the command",
    ),
    ("nic/owners/completion.py", "scan + 1"): ("scan == self.config.completion_queues - 1, 0", "turns"),
    ("nic/queues/descriptor_queue.py", "self.level + pushed"): (
        "self.level != self.entries",
        "as many as fit",
    ),
    ("nic/queues/descriptor_queue.py", "at + 1"): ("at == self.entries - 1, 0", "turns"),
    ("nic/queues/dma_queue.py", "promised + "): ("promised != most", "as many as fit"),
    ("nic/dma/host_dma.py", "address + beats"): (
        "address.eq(address + beats * bus_bytes)",
        "an address, modulo the space",
    ),
    ("nic/dma/host_dma.py", "bursts + "): ("(all_bursts != most)", "as many as may be under way"),
    ("nic/dma/host_dma.py", "later + (plan & behind)"): (
        "(all_bursts != most)",
        "as many as may be under way",
    ),
    ("nic/dma/host_dma.py", "word + 1"): ("words_left - 1", "an address, modulo the SRAM"),
    ("nic/queues/lane_queue.py", "self.level + pushed"): ("(~lanes.full >> vl)[0]", "as many as fit"),
    ("nic/nic.py", "self.credits_out + self.tx.valid - "): (
        "config.link.vls * self.downstream_flits + 1",
        "all credits",
    ),
    ("nic/owners/protection.py", "page + 1"): ("m.Elif(page == last)", "turns at the last page of an access"),
    ("nic/rate/control.py", "scan + 1"): ("scan == flows - 1, 0", "turns"),
    ("nic/rate/tree.py", "stage + 1"): ("stage == 5 + top", "turns at the last stage"),
    ("nic/rate/tree.py", "self._clear_row + 1"): ("self._clear_row.all()", "ends with its round"),
    ("nic/rate/tree.py", "pace + 1"): (
        "m.If(pace == 0)",
        "goes round: a look each round, in every test of the tree",
    ),
    ("nic/rate/tree.py", "scan + 1"): ("scan == self.config.flows - 1, 0", "turns"),
    ("nic/rate/tree.py", "scan + (idle & look"): ("+ looks) % self.config.flows", "turns"),
    ("nic/dma/receive_engine.py", "waited + 1"): ("m.Elif(flits.valid & ~late)", "stands still at its end"),
    ("nic/rtc.py", "phase + self._den"): ("advanced >= self._num", "the rest of a division"),
    ("nic/dma/receive_engine.py", "word + 1"): ("m.If(store)", "an address, modulo the SRAM"),
    ("nic/dma/send_engine.py", "word + 1"): ("to_read - 1", "an address, modulo the SRAM"),
    ("nic/dma/send_engine.py", "packets + begin"): ("packets != 2", "two at most"),
    ("nic/queues/stamper.py", "pace + 1"): (
        "m.If(scans & (pace == 0))",
        "goes round while a scan goes on: a look each round, in every test of it",
    ),
    ("nic/queues/stamper.py", "scan + 1"): (
        "scan.eq(Mux(last, 0, scan + 1))",
        "turns, and `last` is the last channel",
    ),
    ("nic/queues/stamper.py", "stage + 1"): ("m.Case(3)", "ends in stage 3"),
    ("nic/owners/translation.py", "at + 1"): ("m.If(at == entries - 1)", "ends with its round"),
    ("router/allocators/allocator.py", "waited + 1"): ("Mux(overdue, waited,", "stands still at its end"),
    ("router/drop_report.py", "index + 1"): (
        "busy.eq(~(found[i] | flit.tail))",
        "ends where it finds the names",
    ),
    ("router/release_report.py", "index + 1"): (
        "busy.eq(~(found | flit.tail))",
        "ends where it finds the names",
    ),
    ("router/vl_pointers.py", "rows = memory.Memory("): ("Mux(self.here == last, 0,", "turns"),
    ("router/management.py", "place + 1"): ("self.start_flits <= depth", "ends with the packet"),
    ("traffic/generator.py", "rows = memory.Memory("): (
        "(due_next[SPACING_FRACTION:] - old.horizon)[31]",
        "times, compared by their difference, modulo 2^32; and what is left, down to 0",
    ),
    ("traffic/measurement.py", "steady + 1"): ("(steady == STEADY_CYCLES) | through", "the drain ends there"),
    ("traffic/message_node.py", "count + 1"): ("Signal(range(most + 1), name=name)", "at most `most`"),
    ("traffic/rate_server.py", "step + rate.write_ready"): (
        "m.Case(3), m.If(rate.enqueue.ready)",
        "ends in step 3",
    ),
    ("traffic/sender.py", "positions = memory.Memory("): (
        "tail.eq(index + 1 == front.flits)",
        "ends with the packet",
    ),
}
"""Counters by file and text: what in the file keeps a counter from running on, and what it does instead."""


ALONE = {
    ("board/bridge.py", "count + 1"): ("m.If(count == REQUEST_BYTES)", "a whole request is looked at"),
    ("board/bridge.py", "silent + 1"): ("m.Elif(silent == self._gap_cycles)", "begins anew at its end"),
    ("board/bridge.py", "waited + 1"): ("(waited == ANSWER_CYCLES)", "the wait ends there"),
    ("board/bridge.py", "byte + 1"): ("m.If(byte == 3)", "2 bits, which go round: the bytes of a word"),
    ("board/bridge.py", "offset + 4"): ("m.If(left != 0)", "a word asked for each, of 255 at most"),
    ("board/node/host_memory.py", "word + 1"): (
        "word, left, good = Signal.like(beat.addr)",
        "an address, which goes round at the memory's end",
    ),
    ("board/uart.py", "place + 1"): ("m.Elif(place == 9)", "the last bit of a byte ends it"),
    ("link_guard.py", "count + 1"): ("Mux(ends, 0, count + 1)", "begins anew at its end"),
    ("monitors/axi4.py", "self.level + comes"): (
        "self.level + comes - goes",
        "of what is asked for, at most `most`",
    ),
    ("monitors/axi4.py", "under + (aw"): ("(under != most)", "stands still at its end"),
    ("monitors/axi4.py", "count + (ends"): ("(count != most)", "stands still at its end"),
    ("monitors/axi4.py", "beat + 1"): ("Mux(over, 0, beat + 1)", "begins anew behind a burst's last beat"),
    ("monitors/axi4_lite.py", "count + 1"): ("count.eq(count + 1)", "of what is under way"),
    ("monitors/link.py", "count + step"): ("Mux(down, 0, count + step)", "of the credits of a VL"),
    ("router/adaptive/port_loads.py", "count + self.written"): (
        "range(config.link.vls * (config.output_buffer_flits + depth) + 1)",
        "of flits whose credit is not back, as many as there are places for",
    ),
    ("router/adaptive/targets.py", "losses + 1"): ("m.Elif(self.comes & ~keeps)", "stands still at its end"),
    ("monitors/register_port.py", "waited + 1"): (
        "Mux(waited == self._most, waited",
        "stands still at its end",
    ),
    ("router/pipelined/picker.py", "burst + 1"): (
        "Mux(self.went & goes_on, burst + 1, 0)",
        "within a burst",
    ),
}
"""Counters of blocks that the elaborated systems do not have: a line of the file that bounds each, and why."""

TAKEN_ALONE = {
    ("fault_link.py", "now + 1"): ("test_a_fault_that_is_over_does_not_come_back", "ALL_ONES - 1"),
    ("fault_link.py", "counts[name] + 1"): ("test_what_a_failing_link_counts_goes_round", "ALL_ONES"),
    ("link_guard.py", "total + sum(steps)"): ("test_sums_of_narrower_counts_go_round", "range(200)"),
    ("link_guard.py", "self.refused + 1"): ("test_flits_refused_go_round", "LAST"),
    ("link_restart.py", "self.begun_anew + 1"): ("test_links_begun_anew_go_round", "LAST"),
    ("monitors/monitor.py", "cycle + 1"): ("test_the_cycle_of_a_message_goes_round", "CYCLE_BITS"),
    ("router/pipelined/join.py", "router.dropped + sum(lost)"): (
        "test_packets_that_a_pipelined_router_drops_go_round",
        "DROPPED_BITS",
    ),
}
"""Counters of such blocks that a test of `test_counters_alone.py` takes over their wrap: its name, and what it says."""


def test_every_counter_is_taken_over_its_wrap_or_cannot_get_there():
    traffic = TrafficConfig()
    blocks = [
        *(Nic(config) for config in (OWNED, TREE, OWNED.replace(processors=2), preset(NicConfig, "iba"))),
        Nic(preset(NicConfig, "tiny", link=LinkConfig(restart=True))),
        Nic(BUFFERED),
        Nic(TREE.replace(completion_queues=0, regions=0), skippable=True),
        *(make_vl_arbiter(name, vls=3) for name in VL_ARBITERS),
        *(Router(preset(RouterConfig, "tiny", allocator=name)) for name in ALLOCATORS),
        *(Router(config) for config in (preset(RouterConfig, "tiny"), MANAGED)),
        *(block(traffic) for block in (TrafficNode, MessageNode, Measurement)),
        TrafficNode(traffic.replace(watched=True)),
        RateServer(TREE),
    ]
    fragments = [Fragment.get(block, None) for block in blocks]
    found = {
        place for one in fragments for find in (counting_registers, counting_memories) for place in find(one)
    }
    named, used = TAKEN | BOUNDED | GUARDED, set()
    for path, line, bits in sorted(found):
        if not path.resolve().is_relative_to(HDL):
            continue  # Amaranth's own
        name, text = path.resolve().relative_to(HDL).as_posix(), path.read_text().splitlines()[line - 1]
        fits = [key for key in named if key[0] == name and key[1] in text]
        assert len(fits) == 1, (
            f"hdl/{name}:{line}: {text.strip()}: say which test takes it over its wrap: {fits}"
        )
        if fits[0] in BOUNDED:
            assert bits >= BOUNDED[fits[0]][0]
        used.update(fits)
    assert len(named) == len(TAKEN) + len(BOUNDED) + len(GUARDED)
    assert used == named.keys()


GUARDS = GUARDED | ALONE | adapter_counters.ALONE
NAMED = TAKEN | BOUNDED | GUARDED | ALONE | TAKEN_ALONE | adapter_counters.TAKEN | adapter_counters.ALONE


def test_no_line_of_the_hardware_counts_without_being_found():
    """Such a line adds to what it assigns, in a block that the elaborated ones do not have."""
    for path in sorted(HDL.rglob("*.py")):
        for text in path.read_text().splitlines():
            counts = re.search(r"(?<![\w.])([\w.]+)\.eq\((?=.*(?<![\w.])\1 \+|.*\+ \1\b)", text)
            if counts and "m.d.comb" not in text:
                name = path.relative_to(HDL).as_posix()
                assert any(key[0] == name and key[1] in text for key in NAMED), (
                    name,
                    text,
                )


@pytest.mark.parametrize(
    ("file", "test", "says"),
    sorted(
        set(TAKEN.values())
        | {("test_counters_alone.py", *taken) for taken in TAKEN_ALONE.values()}
        | set(adapter_counters.TAKEN.values())
    ),
)
def test_the_named_test_is_there_and_goes_there(file, test, says):
    module = ast.parse((HERE / file).read_text())
    bodies = [ast.unparse(node) for node in ast.walk(module) if getattr(node, "name", None) == test]
    assert len(bodies) == 1 and says in bodies[0]


@pytest.mark.parametrize(("bits", "most", "why"), BOUNDED.values(), ids=[f"{f}: {t}" for f, t in BOUNDED])
def test_what_bounds_a_counter_holds_in_any_run(bits, most, why):
    assert most > 0, why
    assert most.bit_length() <= bits, why


@pytest.mark.parametrize(("place", "guard"), GUARDS.items(), ids=[f"{f}: {t}" for f, t in GUARDS])
def test_what_stops_a_counter_is_there(place, guard):
    assert guard[0] in (HDL / place[0]).read_text()
