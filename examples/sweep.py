"""A sweep: a load curve of two patterns, each load with three seeds, and a picture of it."""

import matplotlib
import polars

import lanikai

matplotlib.use("Agg")
import matplotlib.pyplot as plt

network = lanikai.Network("mesh2x2", vls=2)
figure, axes = plt.subplots()
for pattern in ("uniform", "neighbour"):
    run = network.run(pattern, [0.1, 0.3, 0.5, 0.7], seed=[1, 2, 3], cycles=3000)
    means = run.frame.group_by("load", maintain_order=True).agg(
        polars.col("accepted").mean(), polars.col("latency_mean_cycles").mean(), polars.col("saturated").any()
    )
    print(pattern, means)
    axes.plot(means["load"], means["latency_mean_cycles"], "o-", label=pattern)
axes.set_xlabel("offered load (flits a node and cycle)")
axes.set_ylabel("mean latency (cycles)")
axes.legend()
figure.savefig("sweep.png")
