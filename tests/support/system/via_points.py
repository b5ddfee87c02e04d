"""VIA from end to end on small cards: coroutines of `test_via_firmware.py`, run in the simulator."""

from lanikai.firmware.via.layout import Reliability

from support.system.via_ends import noise, pair, piece, start

LEVELS = tuple(Reliability)


async def messages(cluster, spec):
    """Messages of all sizes from node 0 to node 1 and back, at a level."""
    programs, agents = await start(cluster)
    level = Reliability(spec["level"])
    a, b = await pair(agents, reliability=level)
    out, into = await a.process.allocate(4096), await b.process.allocate(4096)
    content = noise(1, 4096)
    out.buffer.write(content)
    found = []
    for size in spec["sizes"]:
        into.buffer.write(bytes(4096))
        expected = await b.expect(piece(into, 0, 4096))
        sent = await a.send(piece(out, 0, size), immediate=b"abcd" if spec.get("immediate") else None)
        told = await b.done(expected, receive=True), await a.done(sent)
        got = into.buffer.read()
        found.append(
            [
                size,
                *told,
                got[:size] == content[:size] and got[size:] == bytes(4096 - size),
                b.immediate(expected).decode("latin1") if spec.get("immediate") else None,
            ]
        )
    return {
        "found": found,
        "drops": [dict(program.drops) for program in programs],
        "cycle": cluster.clock.cycle,
    }
