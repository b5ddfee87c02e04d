"""A topology of your own, as a graph: two rings of three routers joined by one link, against a ring of six."""

import networkx
import polars

import lanikai

rings = networkx.disjoint_union(networkx.cycle_graph(3), networkx.cycle_graph(3))
rings.add_edge(0, 3)
found = []
for name, topology in (("two rings", rings), ("ring", networkx.cycle_graph(6))):
    network = lanikai.Network(topology, vls=2)  # a router with a node at each vertex
    run = network.run("uniform", [0.1, 0.2, 0.3, 0.4], cycles=4000)
    columns = ("load", "accepted", "latency_mean_cycles", "saturated")
    found.append(run.frame.select(polars.lit(name).alias("topology"), *columns))
print(polars.concat(found))
