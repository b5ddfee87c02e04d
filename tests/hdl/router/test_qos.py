"""Every knob of service changes what is measured at a link."""

from itertools import pairwise

import pytest
from amaranth.sim import Simulator
from lanikai.hdl.config import ConfigError, LinkConfig, RouterConfig
from lanikai.hdl.router.router import Router

LINK = LinkConfig(flit_bits=32, vls=3, hop_bits=2)
CONFIG = RouterConfig(link=LINK, ports=3, input_buffer_flits=10, output_buffer_flits=10, vl_table_entries=2)


def ends_of(router):
    return list(zip(router.rx, router.tx, strict=True))


async def write_tables(traffic, ctx, router, *, high=(), low=(), limit=255, crossbar=None):
    """Write tables of all ports, or of the links or crossbar inputs of all ports, then wait for them to take effect."""
    ports = range(router.config.ports)
    selections = (
        [{"port": 0, "everywhere": 1}]
        if crossbar is None
        else [{"port": port, "crossbar": crossbar} for port in ports]
    )
    for selection in selections:
        await traffic.register(ctx, router, "SELECT", **selection)
        for is_high, rows in ((1, high), (0, low)):
            for entry in range(router.config.vl_table_entries):
                vl, weight = rows[entry] if entry < len(rows) else (0, 0)
                await traffic.register(
                    ctx, router, "VL_TABLE_ENTRY", high=is_high, entry=entry, vl=vl, weight=weight
                )
        await traffic.register(ctx, router, "VL_TABLE_COMMIT", limit=limit)
    for _ in range(60):
        await ctx.tick()


def link_order(traffic, config, *, flits=5, packets=16, **tables):
    """VLs in the order in which 40 flits leave port 2.

    VL 0 of input 0 and VL 1 of input 1 always have more to send than they may. The link has half the crossbar's rate,
    so that its own arbiter decides.
    """
    config = config.replace(link=config.link.replace(rate_num=1, rate_den=2))
    router = Router(config)
    todo = [
        traffic.Packet(number=n, source=n % 2, hops=[2], end=2, vl=n % 2, flits=flits)
        for n in range(2 * packets)
    ]

    async def before(ctx):
        if tables:
            await write_tables(traffic, ctx, router, **tables)

    result = traffic.run_packets(
        router, ends_of(router), config.link, todo, buffer_flits=10, sink_flits=10, before=before
    )
    # The first flits come while buffers fill; what counts is the middle.
    return result.order[2][24:64]


def runs(order):
    """Lengths of the runs of one VL, without the first and last."""
    lengths = [1]
    for a, b in pairwise(order):
        lengths += [1] if a != b else []
        lengths[-1] += a == b
    return lengths[1:-1]


@pytest.mark.parametrize(
    ("arbiter", "tables", "share", "longest"),
    [
        ("round_robin", {}, 20, 1),
        ("fcfs", {}, 20, 1),
        ("fcfs_packet", {}, 20, 5),
        ("table_fast", {"low": ((0, 1), (1, 3))}, 10, 3),
        ("table_fast", {"low": ((0, 3), (1, 1))}, 30, 3),
        ("table_slow", {"low": ((0, 6), (1, 2))}, 30, 6),
        ("table_fast", {"high": ((0, 1),), "low": ((1, 1),), "limit": 3}, 30, 3),
        ("table_fast", {"high": ((1, 1),), "low": ((0, 1),), "limit": 3}, 10, 3),
        ("deficit", {"low": ((0, 5), (1, 15))}, 10, 15),
    ],
)
def test_shares_of_a_link_follow_arbiter_weights_and_limit(traffic, arbiter, tables, share, longest):
    order = link_order(traffic, CONFIG.replace(vl_arbiter=arbiter), **tables)
    assert abs(order.count(0) - share) <= (5 if arbiter == "deficit" else 2)
    lengths = runs(order)
    assert max(lengths) <= longest
    if longest > 1:
        assert max(lengths) == longest


def test_fixed_priority_and_no_limit_give_the_link_to_one(traffic):
    for changes, tables in (
        ({"vl_arbiter": "fixed_priority"}, {}),
        ({"vl_arbiter": "table_fast"}, {"high": ((0, 1),), "low": ((1, 1),), "limit": 255}),
    ):
        order = link_order(traffic, CONFIG.replace(**changes), **tables)
        assert order.count(0) >= 38


def crossbar_order(traffic, config, tables, *, flits=(210, 210), packets=1):
    """VLs in the order in which flits leave port 2.

    Input 0 (VL 0) and input 1 (VL 1) have `packets` each for it, of so many flits. The link is as fast as the crossbar,
    so its own arbiter has nothing to decide.
    """
    router = Router(config)
    todo = [
        traffic.Packet(
            number=n,
            source=n % 2,
            hops=[2],
            end=2,
            vl=0 if config.vl_selection != "same" else n % 2,
            flits=flits[n % 2],
            service_level=n % 2,
            out_vls=(0, 1, 2),
        )
        for n in range(2 * packets)
    ]

    async def before(ctx):
        if tables:
            await write_tables(traffic, ctx, router, **tables)

    result = traffic.run_packets(
        router, ends_of(router), LINK, todo, buffer_flits=10, sink_flits=10, before=before
    )
    # An output that somebody asks is never idle.
    cycles = result.busy[2]
    if packets == 1:
        assert cycles == list(range(cycles[0], cycles[0] + sum(flits)))
    return result.order[2]


THREE_TO_ONE = {"low": ((0, 3), (1, 1), (2, 4))}
"""A table whose VL 2 is never used: its share goes to the others in proportion."""
FULL_RATE = CONFIG.replace(vl_table_entries=3)


@pytest.mark.parametrize(
    ("changes", "tables", "share"),
    [
        ({"vl_arbiter": "round_robin"}, {}, 100),
        ({"vl_arbiter": "fcfs"}, {}, 100),
        ({"vl_arbiter": "fcfs_packet"}, {}, 200),
        ({"vl_arbiter": "fixed_priority"}, {}, 200),
        ({"vl_arbiter": "table_fast"}, THREE_TO_ONE, 150),
        ({"vl_arbiter": "table_slow"}, {"low": ((0, 1), (1, 3), (2, 4))}, 50),
        ({"vl_arbiter": "table_fast"}, {"high": ((1, 1),), "low": ((0, 1),), "limit": 3}, 50),
        ({"vl_arbiter": "table_fast", "allocator": "wavefront"}, THREE_TO_ONE, 150),
        ({"vl_arbiter": "table_slow", "allocator": "islip"}, THREE_TO_ONE, 150),
    ],
)
def test_shares_at_full_rate_follow_arbiter_weights_and_limit(traffic, changes, tables, share):
    """The shares are right over 50 frames, within 1% of 200 flits. Once VL 0 has ended, VL 1 has every cycle."""
    order = crossbar_order(traffic, FULL_RATE.replace(**changes), tables)[8:208]
    assert abs(order.count(0) - share) <= 2


def test_weights_at_full_rate_are_those_of_the_output_vl(traffic):
    """Both packets come on VL 0; the map gives the first one VL 2 and the second one VL 1."""
    config = FULL_RATE.replace(
        vl_arbiter="table_fast", vl_selection="service_level", service_level_map=(2, 1) * 8
    )
    order = crossbar_order(traffic, config, {"low": ((2, 3), (1, 1))})[8:208]
    assert abs(order.count(2) - 150) <= 2


@pytest.mark.parametrize(
    ("arbiter", "flits"),
    [
        ("table_fast", 7),
        ("table_slow", 40),
        ("deficit", 2),
        *(pytest.param("table_fast", flits, marks=pytest.mark.full) for flits in (2, 40)),
        *(pytest.param("table_slow", flits, marks=pytest.mark.full) for flits in (2, 7)),
        *(pytest.param("deficit", flits, marks=pytest.mark.full) for flits in (7, 40)),
    ],
)
def test_packets_leave_no_gap_in_the_shares(traffic, arbiter, flits):
    """VLs of different inputs share 3:1 by turns of whole packets, with packets of all lengths.

    The next header has its output VL when the tail has crossed. So over whole frames the shares are exact at a link's
    full rate.
    """
    config = CONFIG.replace(vl_arbiter=arbiter)
    turn = 3 * flits * (40 // flits)
    packets = 8 * turn // flits
    order = crossbar_order(
        traffic, config, {"low": ((0, turn), (1, turn // 3))}, flits=(flits, flits), packets=packets
    )
    frame = turn + turn // 3
    middle = order[frame : 5 * frame]
    assert abs(middle.count(0) - 3 * frame) <= 0.01 * len(middle)


@pytest.mark.parametrize(
    ("arbiter", "heavy"),
    [pytest.param("table_fast", 150, marks=pytest.mark.full), ("table_slow", 150), ("deficit", 120)],
)
def test_a_vl_between_packets_keeps_its_turn_and_share(traffic, arbiter, heavy):
    """Without look-ahead and with packets of 40 flits VL 0 does not ask in the two cycles between them, and VL 1 has
    them. Without its turn and share kept VL 0 would have 62%, 60% and 47%."""
    config = CONFIG.replace(vl_arbiter=arbiter, header_lookahead=False)
    order = crossbar_order(
        traffic, config, {"low": ((0, heavy), (1, heavy // 3))}, flits=(40, 40), packets=10
    )[40:440]
    # It uses 40 of 42 cycles in its turn.
    assert 0.75 * 40 / 42 - 0.02 <= order.count(0) / len(order) <= 0.76


@pytest.mark.parametrize(
    "arbiter",
    ["deficit", *(pytest.param(f"table_{kind}", marks=pytest.mark.full) for kind in ("fast", "slow", "iba"))],
)
def test_an_output_chooses_among_all_vls_of_its_inputs(traffic, arbiter):
    """One input has VLs 0 and 1, another VL 2, all for one output. The inputs' tables stay as they are after reset,
    equal for all. The shares are those of the output's table, also for VLs that share an input."""
    config = CONFIG.replace(vl_arbiter=arbiter, vl_table_entries=3, input_buffer_flits=16)
    # 16 flits of 32 bits are the 64 bytes of a unit.
    unit = {"deficit": 16, "table_iba": 1}.get(arbiter, 1)
    weights = {"low": ((0, unit), (1, 4 * unit), (2, 3 * unit))}
    router = Router(config)
    packets = [
        traffic.Packet(number=n, source=0 if n % 3 < 2 else 1, hops=[2], end=2, vl=n % 3, flits=16)
        for n in range(90)
    ]

    async def before(ctx):
        await write_tables(traffic, ctx, router, **weights, crossbar=0)

    result = traffic.run_packets(
        router, ends_of(router), LINK, packets, buffer_flits=16, sink_flits=10, before=before
    )
    frame = 8 * (16 if arbiter in ("deficit", "table_iba") else 1)
    middle = result.order[2][128 : 128 + (400 // frame) * frame]
    for vl, weight in enumerate((1, 4, 3)):
        assert abs(middle.count(vl) / len(middle) - weight / 8) <= 0.01, (vl, middle.count(vl), len(middle))


@pytest.mark.parametrize("favoured", [0, 1])
def test_crossbar_inputs_have_tables_of_their_own(traffic, favoured):
    """Both VLs of input 0 wait with full buffers for two outputs that are let go at once. The input's table
    says who crosses first; the links' tables, left as they are, do not."""
    router = Router(CONFIG.replace(vl_arbiter="table_fast"), credit_flits=[20] * 3)
    weights = ((favoured, 9), (1 - favoured, 1))

    packets = [
        # They hold the input's VLs back: one VL each on outputs 1 and 2, from input 1 and 2.
        traffic.Packet(number=0, source=1, hops=[1], end=1, vl=0, flits=30, start=0),
        traffic.Packet(number=1, source=2, hops=[2], end=2, vl=1, flits=30, start=0),
        traffic.Packet(number=2, source=0, hops=[1], end=1, vl=0, flits=10, start=6),
        traffic.Packet(number=3, source=0, hops=[2], end=2, vl=1, flits=10, start=6),
    ]

    async def before(ctx):
        await write_tables(traffic, ctx, router, low=weights, crossbar=1)

    result = traffic.run_packets(
        router, ends_of(router), LINK, packets, buffer_flits=10, sink_flits=20, before=before
    )
    ends = [result.seen[2][1], result.seen[3][1]]
    assert ends[1 - favoured] - ends[favoured] >= 6


def test_output_vl_and_class_change_who_waits(traffic):
    """Two packets are for one port: on the same VL they go one after the other, on two VLs side by side."""
    packets = [
        traffic.Packet(
            number=n, source=n, hops=[2], end=2, vl=0, flits=20, service_level=n, out_vls=tuple(range(3))
        )
        for n in range(2)
    ]

    def difference(**changes):
        router = Router(CONFIG.replace(**changes))
        result = traffic.run_packets(router, ends_of(router), LINK, packets, buffer_flits=10)
        return abs(result.seen[0][1] - result.seen[1][1])

    assert difference() >= 19
    assert difference(vl_selection="service_level", service_level_map=(1, 1) * 8) >= 19
    assert difference(vl_selection="service_level", service_level_map=(1, 2) * 8) <= 3
    assert difference(vl_selection="any", vl_classes=(0, 1, 2), service_level_map=(0,) * 16) >= 19
    assert difference(vl_selection="any", vl_classes=(0, 0, 1), service_level_map=(0,) * 16) <= 3


def finished(traffic, config, packets, buffer_flits=10):
    """The cycle of the last flit."""
    router = Router(config)
    result = traffic.run_packets(
        router, ends_of(router), config.link, packets, buffer_flits=buffer_flits, sink_flits=10
    )
    return max(tail for _, tail in result.seen.values())


def test_the_number_of_table_entries_bounds_what_can_be_weighted(traffic):
    """The third row of a table of two does not exist."""
    for entries, share in ((2, 30), (3, 10)):
        config = CONFIG.replace(vl_arbiter="table_fast", vl_table_entries=entries)
        order = link_order(traffic, config, low=((0, 3), (1, 1), (1, 8))[:entries])
        assert abs(order.count(0) - share) <= 2


def test_buffers_rate_and_look_ahead_change_how_long_it_takes(traffic):
    """Input buffers below the credit loop slow a VL down, as does a slower link. Look-ahead closes the gaps of 2 cycles
    between packets."""
    stream = [traffic.Packet(number=n, source=0, hops=[2], end=2, vl=0, flits=8) for n in range(5)]
    base = finished(traffic, CONFIG, stream)
    assert finished(traffic, CONFIG.replace(input_buffer_flits=2), stream, buffer_flits=2) >= base + 15
    half = CONFIG.replace(link=LINK.replace(rate_num=1, rate_den=2))
    assert finished(traffic, half, stream) >= base + 25
    assert finished(traffic, CONFIG.replace(header_lookahead=True), stream) == base - 2 * 4


def test_output_buffers_hold_what_a_receiver_does_not_take(traffic):
    """Such flits are out of the input's buffer when the receiver takes none: its credits, and the output's buffer."""
    for depth in (2, 10):
        router = Router(CONFIG.replace(output_buffer_flits=depth), credit_flits=[3] * 3)

        async def bench(ctx, router=router, depth=depth):
            credits, crossed, turn = 10, 0, 0
            for _ in range(60):
                credits += bool(ctx.get(router.rx[0].credit_valid))
                crossed += bool(ctx.get(router.rx[0].credit_valid))
                ctx.set(router.rx[0].valid, credits > 0)
                ctx.set(router.rx[0].payload, {"data": 2 << 8, "vl": 0, "head": turn == 0, "tail": 0})
                turn += credits > 0
                credits -= credits > 0
                await ctx.tick()
            assert crossed == 3 + depth

        simulator = Simulator(router)
        simulator.add_clock(1e-6)
        simulator.add_testbench(bench)
        simulator.run()


def test_an_unknown_arbiter_is_refused_by_name():
    with pytest.raises(
        ConfigError, match=r"^RouterConfig\.vl_arbiter = 'no_such_arbiter': one of deficit, fcfs, "
    ):
        Router(CONFIG.replace(vl_arbiter="no_such_arbiter"))
