"""MPI over GM (gulati-thesis-2001 4.4): ranks are coroutines.

    worlds = await start_mpi(hosts)                     # a rank on every node

    async def main(world: Communicator) -> None:
        if world.rank == 0:
            await world.send(b"hello", 1, tag=7)
        elif world.rank == 1:
            buffer = bytearray(5)
            status = await world.receive(buffer, ANY_SOURCE, 7)

    await run_ranks(cluster.clock, worlds, main)

- `communicator`: the calls; `collectives`, `attributes`, `qos`: what they are made of and mapped to.
- `process`: the protocols; `matching`: which message a receive gets; `envelope`: the header; `config`: costs, sizes.
- `transport`: what it stands on; `gm_transport`: that over GM. `world`: start and end.
- `trace`, `replay`: a recorded program, played again.
"""
