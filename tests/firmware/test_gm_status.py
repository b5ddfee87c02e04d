"""The state that a watchdog writes into the log: who waits, and for what."""

from __future__ import annotations

from support.firmware.python_cluster import Cluster


def test_a_paused_flow_is_told_by_firmware_and_library() -> None:
    cluster = Cluster(2)
    program, gm = cluster.programs[0], cluster.gms[0]

    async def main() -> None:
        a, b = await gm.open_port(0), await cluster.gms[1].open_port(3)
        assert program.pending == gm.pending == 0 and not program.waiting() and not gm.waiting()
        sent = cluster.world.cycle
        handle = await a.send(await a.dma_malloc(40), node=1, port=3, priority=1)
        while 0 not in program.flows or program.flows[0].paused_until_ticks is None:
            await cluster.world.sleep(10)
        asked = handle.sent_cycle
        assert sent < asked and program.advanced_cycle == 0 and gm.advanced_cycle <= asked
        ticks = program.flows[0].paused_until_ticks
        flow = (
            "flow 0 (port 0 to port 3 of node 1, high): 1 sendable, 0 awaiting acknowledgement, "
            f"no receive token there: paused until tick {ticks}"
        )
        assert program.waiting() == [f"node 0 {flow}"] and program.pending == gm.pending == 1
        lines = program.state()
        assert lines[0] == "gm firmware of node 0:"
        assert f"  {flow}, IDT 0 ticks, not valid in the queue" in lines
        assert "  rdma waits for a job" in lines and "  recv waits for a packet" in lines
        stream = "  to node 1, port 0 to 3, high: next packet 1, 0 not acknowledged, 0 to be sent again, "
        stream += "0 in transmit buffers; 1 tries, 400 ticks since a packet was taken"
        assert stream in lines
        sends = f"sends 40 bytes from port 0 of node 0 to port 3 of node 1, since cycle {asked}"
        assert gm.waiting() == [f"node 0 port 0: {sends}"]
        assert f"    {sends}" in gm.state()
        refused = "  of node 0, port 0 to 3, high: expects 0, which it refused"
        assert refused in cluster.programs[1].state()
        await b.provide_receive_buffer(await b.dma_malloc(40), priority=1)
        await handle.wait()
        assert program.advanced_cycle > asked and gm.advanced_cycle > program.advanced_cycle
        assert cluster.programs[1].advanced_cycle > asked
        await cluster.settle()
        assert not program.waiting() and not gm.waiting() and gm.pending == 0

    cluster.run(main())


def test_a_command_and_a_receive_that_wait_are_told() -> None:
    cluster = Cluster(2)
    gm = cluster.gms[0]

    async def main() -> None:
        port = await gm.open_port(0)
        cluster.world.spawn(port.receive(), "receive")
        cluster.world.spawn(port.register(gm.memory.allocate(8)), "register")
        await cluster.world.sleep(200)
        assert gm.waiting() == [
            "node 0 port 0: waits for the answer to register",
            "node 0 port 0: 1 wait to receive",
        ]
        assert gm.pending == 1

    cluster.run(main())
