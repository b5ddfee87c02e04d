"""MPI over GM (gulati-thesis-2001 4.4) under mpi4py's names: ranks are coroutines.

    from lanikai.sim.host.mpi import MPI

    worlds = await start_mpi(hosts)                     # a rank on every node

    async def main(world: MPI.Intracomm) -> None:
        if world.rank == 0:
            await world.Send(b"hello", dest=1, tag=7)
        elif world.rank == 1:
            buffer, status = bytearray(5), MPI.Status()
            await world.Recv(buffer, source=MPI.ANY_SOURCE, tag=7, status=status)

    await run_ranks(cluster.clock, worlds, main)

- `MPI`: the names of a program; `comm`: communicators and their calls; `data`: their arguments.
- `collectives`: what collective operations are made of; `schedule`: those that go on beside the program.
- `process`, `outgoing`: the protocols; `matching`: which message a receive gets; `envelope`: the header; `config`:
  costs, sizes; `deadlock`: ranks that wait for one another.
- `transport`: what it stands on; `gm_transport`: that over GM. `world`: start and end; `qos`: bandwidth.
- `trace`, `replay`: a recorded program, played again.
"""
