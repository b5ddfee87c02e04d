"""The counters of the adapter and of PowerHerd, for `tests/hdl/test_counters.py`, which does not elaborate them.

Keys are a file and a text of a line.
"""

_QUEUES = ("hca/test_class_queues.py", "test_counters_go_over_their_wrap")
_WRITER = (
    "hca/test_completion_writer.py",
    "test_queues_do_as_the_plain_model",
    "Nearly(ctx, getattr(dut, name), 2)",
)
_ENDS = ("hca/test_send_ends.py", "test_counters_go_over_their_wrap")
_CONTROL = ("hca/injection/test_power.py", "test_control_has_policy_and_budget_in_series")
_RECEIVE = ("hca/test_receive_engine.py", "test_random_packets_do_as_the_plain_model", "bench.nearly(ctx, 1)")

TAKEN = {
    ("hca/activity.py", "count + sum(event"): (
        "hca/test_activity.py",
        "test_every_event_counts_over_the_wrap",
        "Nearly(ctx, getattr",
    ),
    ("hca/class_queues.py", "self.refusals + 1"): (*_QUEUES, "Nearly(ctx, dut.refusals, 2)"),
    ("hca/class_queues.py", "self.late_dropped + "): (*_QUEUES, "Nearly(ctx, dut.late_dropped, 1)"),
    ("hca/completion_writer.py", "self.dropped + 1"): _WRITER,
    ("hca/completion_writer.py", "self.overruns + 1"): _WRITER,
    ("hca/completion_writer.py", "self.bus_errors + 1"): _WRITER,
    ("hca/completion_writer.py", "self.refusals + 1"): _WRITER,
    ("hca/departures.py", "self.packets + 1"): (*_ENDS, "send.departures.flits"),
    ("hca/driver_port.py", "self.refused + 1"): (*_ENDS, "bench.hca.registers.refused"),
    ("hca/ends.py", "counter + 1"): (*_ENDS, "send.ended.failed"),
    ("hca/hca.py", "self.window_refused + 1"): (*_ENDS, "bench.hca.window_refused"),
    ("hca/injection/control.py", "self.held_cycles + 1"): (*_CONTROL, "Nearly(ctx, dut.held_cycles)"),
    ("hca/injection/control.py", "self.never_fits + 1"): (*_CONTROL, "Nearly(ctx, dut.never_fits)"),
    ("hca/packet_sender.py", "self.bus_errors + 1"): (*_ENDS, "send.sender.bus_errors"),
    ("hca/receive/messages.py", "counter + 1"): _RECEIVE,
    ("hca/receive/packet_stage.py", "self.length_errors + 1"): _RECEIVE,
    ("hca/receive/packet_stage.py", "self.crc_errors + 1"): _RECEIVE,
    ("hca/receive/packet_stage.py", "self.packets + 1"): _RECEIVE,
    ("hca/receive/rings.py", "self.refusals + 1"): _RECEIVE,
    ("hca/receive/write_ends.py", "self.bus_errors + 1"): _RECEIVE,
    **{
        ("monitors/flit_tally.py", f"self.{name} + "): (
            "monitors/test_flit_tally.py",
            "test_flits_tails_and_credits_count_over_the_wrap",
            "Nearly(ctx, getattr(dut, name), 10)",
        )
        for name in ("flits", "tails", "lasts", "credits")
    },
    ("monitors/flit_tally.py", "self.beats + "): (
        "monitors/test_flit_tally.py",
        "test_beats_count_over_the_wrap",
        "Nearly(ctx, dut.beats, 10)",
    ),
    ("router/power_herd.py", "self.stalls + 1"): (
        "router/test_power_herd.py",
        "pair",
        "Nearly(ctx, herd.stalls)",
    ),
}
"""The test that takes a counter over its wrap: its file, its name, and what it says."""

ALONE = {
    ("hca/class_queues.py", "count + 1"): ("with m.If(~mine_late)", "a bit a queue pair"),
    ("hca/class_queues.py", "swept + 1"): (
        "m.If(swept == max(classes << row_bits, config.queue_pairs) - 1)",
        "ends with its round",
    ),
    ("hca/class_queues.py", "tail + 1"): ("tail == entries - 1, 0", "turns"),
    ("hca/class_queues.py", "head + 1"): ("head == entries - 1, 0", "turns"),
    ("hca/class_queues.py", "level + 1"): ("level == entries for level", "as many as fit"),
    ("hca/departures.py", "under_way + self.start"): (
        "self.room.eq(under_way != most)",
        "as many as there is room for",
    ),
    ("hca/hca.py", "count + 1"): ("range(most + 1)", "all credits"),
    ("hca/injection/power.py", "self.used + "): (
        "sum(given_back)",
        "the budget, `test_power_budget.py` proves it",
    ),
    ("hca/injection/self_tuned.py", "cycle + 1"): (
        "cycle == GATHER_CYCLES - 1",
        "turns: 5 bits of 32 cycles",
    ),
    ("hca/injection/self_tuned.py", "gather + 1"): ("Mux(tunes, 0, gather + 1)", "turns"),
    ("hca/injection/self_tuned.py", "line + slope"): (
        "signed(COUNT_BITS + 2 + step_bits)",
        "begins anew each 32 cycles, with room for the steepest line",
    ),
    ("hca/injection/self_tuned.py", "counted + self.delivered"): (
        "counted.eq(0)",
        "begins anew each 32 cycles, with a flit an adapter and cycle at most",
    ),
    ("hca/message_reader.py", "message.address + size"): (
        "axi.araddr.eq(address)",
        "an address, modulo the space",
    ),
    ("hca/message_reader.py", "number + 1"): ("number", "a packet's number, modulo 2^8"),
    ("hca/message_reader.py", "address + burst"): ("axi.araddr.eq(address)", "an address, modulo the space"),
    ("hca/packet_counts.py", "swept + 1"): ("sweeps = swept != pairs", "ends with its round"),
    ("hca/packet_counts.py", "here.data + 1"): (
        "fewer than 2^bits",
        "counts that are compared modulo their range",
    ),
    ("hca/send_side.py", "bursts + (axi"): ("Signal(range(most + 1))", "as many as the packets ahead have"),
    ("hca/receive/data_writer.py", "place + burst.beats"): ("place", "goes round a memory of its range"),
    ("hca/receive/data_writer.py", "wanted.address + size"): ("axi.awaddr.eq(wanted.address)", "an address"),
    ("hca/receive/data_writer.py", "now.place + 1"): ("now.place", "goes round a memory of its range"),
    ("hca/receive/messages.py", "message.received + "): (
        "message.total",
        "a message's bytes, of 65535 at most",
    ),
    ("hca/receive/packet_stage.py", "before + 1"): ("m.Elif(before != most + 1)", "stands still at its end"),
    ("hca/receive/packet_stage.py", "used + good"): ("(used == 0)", "as many as fit"),
    ("router/power_herd.py", "place + 1"): ("Mux(last, 0, place + 1)", "turns"),
    ("router/power_herd.py", "self.used + energy - gone"): ("gone.eq(Mux(round_once", "what a window holds"),
}
"""The text that stops a counter, in the same file, and why."""
