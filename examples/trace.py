"""A trace: the messages of a recorded MPI program are sent again over the simulated cards, beside a rival or not.

The trace is the excerpt of Sweep3D that comes with Lanikai. `traces=["rank0.txt", ...]` names files of your own.
"""

import lanikai

run = lanikai.run("mpi-replay", messages=2)
for row in run.frame.unique("point", maintain_order=True).rows(named=True):
    rival = "with a rival" if row["competing"] else "alone"
    reserved = ", bandwidth reserved" if row["reserved"] else ""
    print(f"{rival}{reserved}: the program takes {row['replay_us']:.0f} us")
print(run.claims.select("text", "holds"))
