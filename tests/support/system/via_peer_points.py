"""The model of VIA's peers beside real cards: coroutines of `test_via_peer.py`."""

from __future__ import annotations

from lanikai.firmware.via.ladder import rung
from lanikai.firmware.via.trace import Stage
from lanikai.sim.experiments.via.joined import declare, join, start_via
from lanikai.sim.experiments.via.peers import answer, buffer, open_process
from lanikai.sim.experiments.via.rounds import COMPLETIONS, QUEUE_ENTRIES, Process
from lanikai.sim.host.via.vipl.transfers import VipPostRecv
from lanikai.sim.models.via_peer import PeerEnd, PeerTimes, ViaPeer

from support.system.via_ends import PlainProcess, Reliability, piece, start

SIZE = 64
OWN = 32
"""Bytes of messages of the peer's own accord."""


async def alone(cluster, spec):
    """A card with firmware, and a peer. Returns for each of the peer's times in `spec["times"]` when messages went and
    when their answers came; what became of each descriptor; and what was dropped."""
    (program,), (agent,) = await start(cluster, nodes=[0], **spec["config"])
    peer = ViaPeer(
        cluster.nodes[1],
        node=1,
        nic=cluster.config.nic,
        routes={0: cluster.network.source_route(1, 0)},
        times=PeerTimes(latency_cycles=0),
    )
    peer.start()
    process = PlainProcess(agent)
    out, into = await process.allocate(SIZE), await process.allocate(4 * SIZE)
    vis = []
    for level in (Reliability.UNRELIABLE, Reliability.RELIABLE_RECEPTION):
        vi = await process.vi(reliability=level)
        await vi.connect(1, 10 + vi.channel)
        peer.connect(
            PeerEnd(channel=10 + vi.channel, node=0, other=vi.channel, answer_bytes=SIZE, level=level)
        )
        vis.append(vi)
    plain, reliable = vis
    rounds, told = [], []
    for times in spec["times"]:
        peer.times = PeerTimes(**times)
        expected = [await plain.expect(piece(into, SIZE * place, SIZE)) for place in range(3)]
        await cluster.clock.sleep(4000)
        sent = [await plain.send(piece(out, 0, SIZE)) for _ in range(3)]
        told += [await plain.done(one, receive=True) for one in expected]
        told += [await plain.done(one) for one in sent]
        trace = {(one.receive, one.number): one for one in program.trace if one.channel == plain.channel}
        rounds.append(
            [
                (trace[False, number].of(Stage.SEND)[0].begin, trace[True, number].of(Stage.FOUND)[0].begin)
                for number in sent
            ]
        )
    # Reliable: the descriptor ends when it has been acknowledged, and an answer comes besides.
    waits = []
    for times in spec["times"]:
        peer.times = PeerTimes(**times)
        expected = await reliable.expect(piece(into, 0, SIZE))
        await cluster.clock.sleep(4000)
        begin = cluster.clock.cycle
        number = await reliable.send(piece(out, 0, SIZE))
        told.append(await reliable.done(number))
        waits.append(cluster.clock.cycle - begin)
        told.append(await reliable.done(expected, receive=True))
    # A message of the peer's own accord, and one for an end that it has not.
    expected = await plain.expect(piece(into, 0, SIZE))
    await cluster.clock.sleep(4000)
    peer.send(10 + plain.channel, OWN)
    own = await plain.done(expected, receive=True)
    stranger = await process.vi()
    await stranger.connect(1, 3)
    told.append(await stranger.done(await stranger.send(piece(out, 0, SIZE))))
    await cluster.clock.sleep(4000)
    return {
        "rounds": rounds,
        "waits": waits,
        "told": told,
        "own": own,
        "drops": [dict(program.drops), dict(peer.dropped)],
    }


async def alike(cluster, spec):
    """All nodes full, and alike: as many active VIs each, of which the node with the lower number begins.

    `spec` is that of a point of via-scalability with one load. Returns the latencies of node 0, whose VIs all begin,
    microseconds.
    """
    (load,) = spec["loads"]
    config = rung(spec["design"]).config(queue_entries=QUEUE_ENTRIES)
    _, agents = start_via(cluster, config)
    count, nodes = load["processes"], len(agents)
    active = load["active_vis"] // count
    assert active == nodes - 1, "a process has a VI with one process of every other node"
    unused = load["declared_vis"] // count - active
    lives, over = [], []
    for _ in range(count):
        programs = [await open_process(agent) for agent in agents]
        processes = [Process(program, load, await program.queue(COMPLETIONS)) for program in programs]
        for low in range(nodes):
            for high in range(low + 1, nodes):
                here = await programs[low].vi(most_bytes=4096, told=(None, processes[low].queue))
                there = await programs[high].vi(most_bytes=4096)
                for _ in range(2):
                    await VipPostRecv(there, buffer(programs[high], load))
                await join(here, there)
                cluster.clock.spawn(answer(there, programs[high], load), "answers")
                processes[low].vis.append(here)
        for node, program in enumerate(programs):
            await declare(program.agent, program.ptag.owner, [((node + 1) % nodes, 0)] * unused)
        lives += [(process, node) for node, process in enumerate(processes) if process.vis]

    async def life(process, flag):
        number = 0
        while number < load["warm_up"] + load["rounds"] or (flag is None and len(over) < count):
            await process.round(process.vis, counts=number >= load["warm_up"])
            number += 1
        if flag is not None:
            over.append(flag)
            flag.set()

    flags = [cluster.clock.flag() if node == 0 else None for _, node in lives]
    for (process, _), flag in zip(lives, flags, strict=True):
        cluster.clock.spawn(life(process, flag), "process")
    for flag in flags:
        if flag is not None:
            await flag.wait()
    to_us = 1e6 / cluster.config.nic.clock_hz
    return [one * to_us for process, node in lives if node == 0 for one in process.latencies]
