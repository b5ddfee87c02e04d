"""Output VLs: one owner each, in turn, whatever meets in a cycle."""

from random import Random

from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from lanikai.hdl.config import RouterConfig, preset
from lanikai.hdl.router.vl_allocation import VlAllocationStage

CONFIG = preset(RouterConfig, "tiny")
PORTS, VLS = CONFIG.ports, CONFIG.link.vls


@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.data())
def test_owners_follow_the_model(data):
    """Packets of random lengths and ports are at every input VL, against a model that keeps one owner and one turn for
    each output VL. A tail and the next grant meet in all ways."""
    dut = VlAllocationStage(CONFIG)
    ports = st.integers(0, PORTS - 1)
    # For each input VL: (cycles of rest, output port, cycles of ownership) of each of its packets.
    packets = data.draw(
        st.lists(
            st.lists(st.tuples(st.integers(0, 3), ports, st.integers(1, 4)), min_size=8, max_size=12),
            min_size=PORTS * VLS,
            max_size=PORTS * VLS,
        )
    )

    async def bench(ctx):
        todo = {(i, v): list(packets[i * VLS + v]) for i in range(PORTS) for v in range(VLS)}
        resting = {key: rest[0][0] for key, rest in todo.items()}
        waiting, owned = {}, {}
        owner, last = {}, {(p, v): PORTS - 1 for p in range(PORTS) for v in range(VLS)}
        passed = dict.fromkeys(todo, 0)
        for _ in range(400):
            if not any(todo.values()):
                break
            for (p, v), (i, left) in owner.items():
                owned[i, v] = (p, left)
            done = {(i, v) for (i, v), (_, left) in owned.items() if left == 1}
            for i in range(PORTS):
                ctx.set(dut.done[i], sum(1 << v for v in range(VLS) if (i, v) in done))
                for p in range(PORTS):
                    ctx.set(dut.want[i][p], sum(1 << v for v in range(VLS) if waiting.get((i, v)) == p))
                    holds = sum(1 << v for v in range(VLS) if owned.get((i, v), (None,))[0] == p)
                    assert ctx.get(dut.holds[i][p]) == holds
                assert ctx.get(dut.held[i]) == sum(1 << v for v in range(VLS) if (i, v) in owned)
            taken = set()
            for p, v in last:
                if (p, v) in owner:
                    continue
                turns = [(last[p, v] + 1 + k) % PORTS for k in range(PORTS)]
                asking = [i for i in turns if waiting.get((i, v)) == p]
                for i in asking[1:]:
                    passed[i, v] += 1
                    assert passed[i, v] <= PORTS - 1
                if asking:
                    winner = asking[0]
                    last[p, v] = winner
                    passed[winner, v] = 0
                    taken.add((winner, v))
                    # One more cycle: it owns from the next cycle on.
                    owner[p, v] = (winner, todo[winner, v][0][2] + 1)
            for i in range(PORTS):
                assert ctx.get(dut.taken[i]) == sum(1 << v for v in range(VLS) if (i, v) in taken)
            # To the next cycle.
            for key, (i, left) in list(owner.items()):
                owner[key] = (i, left - 1)
                if left == 1:
                    del owner[key]
                    todo[i, key[1]].pop(0)
                    if todo[i, key[1]]:
                        resting[i, key[1]] = todo[i, key[1]][0][0]
            owned.clear()
            for key in taken:
                del waiting[key]
            for key in todo:
                if key in resting:
                    if resting[key] == 0:
                        del resting[key]
                        waiting[key] = todo[key][0][1]
                    else:
                        resting[key] -= 1
            await ctx.tick()
        assert not any(todo.values())

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()


@settings(max_examples=12, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**16), rest=st.sampled_from([0.0, 0.5]))
def test_with_look_ahead_a_lane_goes_on_without_a_gap(seed, rest):
    """Every input VL wants an output for its next packet while it owns one for the last.

    In the cycle of a tail the output VL goes to the next in turn of those who can use it. These are headers at the
    front, and the header of the packet behind the tail. Nobody else is given one, and so no owner waits for another
    output.
    """
    dut = VlAllocationStage(CONFIG.replace(header_lookahead=True))
    chance, ports, vls = Random(seed), range(PORTS), range(VLS)

    async def bench(ctx):
        owner, left, want = {}, {}, {}
        last = {(p, v): PORTS - 1 for p in ports for v in vls}
        met = 0
        for _ in range(200):
            for i in ports:
                for v in vls:
                    if (i, v) not in want and chance.random() >= rest:
                        want[i, v] = chance.randrange(PORTS)
            at = {(i, v): p for (p, v), i in owner.items()}
            done = {key for key in at if left[key] == 1}
            for i in ports:
                ctx.set(dut.done[i], sum(1 << v for v in vls if (i, v) in done))
                for p in ports:
                    ctx.set(dut.want[i][p], sum(1 << v for v in vls if want.get((i, v)) == p))
                    assert ctx.get(dut.holds[i][p]) == sum(1 << v for v in vls if at.get((i, v)) == p)
            given = {}
            for p, v in last:
                if (p, v) in owner and (owner[p, v], v) not in done:
                    continue
                turns = [(last[p, v] + 1 + k) % PORTS for k in ports]
                able = [i for i in turns if want.get((i, v)) == p and at.get((i, v), p) == p]
                met += (p, v) in owner and bool(able)
                if able:
                    given[able[0], v] = p
            for i in ports:
                assert ctx.get(dut.taken[i]) == sum(1 << v for v in vls if (i, v) in given)
            for key in at:
                left[key] -= 1
            for i, v in done:
                del owner[at[i, v], v]
            for (i, v), p in given.items():
                del want[i, v]
                owner[p, v], left[i, v], last[p, v] = i, chance.randint(1, 4), i
            await ctx.tick()
        assert met > 50

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
