"""Your own arbiter: the virtual lane that asks and has the highest number sends. Compare it with two built-in ones."""

import polars
from lanikai.hdl.vl_arbiter.base import VlArbiter

import lanikai


@lanikai.register("vl_arbiters", "highest")
class Highest(VlArbiter):
    """The highest VL first. The lower ones may wait for ever, so there is no bound of the wait."""

    rests = True

    @staticmethod
    def wait_bound(data_vls):
        return None

    def pick(self, m, requests, tails, grant, advance):
        for vl in range(self.vls):  # the last assignment that is active wins
            with m.If(requests[vl]):
                m.d.comb += grant.eq(1 << vl)


low = lanikai.Traffic(load=0.3, packet_flits=8, vl_first=0, service_level=0)
high = lanikai.Traffic(load=0.3, packet_flits=8, vl_first=1, service_level=1)
found = []
for arbiter in ("round_robin", "fcfs", "highest"):
    network = lanikai.Network("mesh2x2", vls=2, vl_arbiter=arbiter)
    run = network.run(classes=[low, high], cycles=5000)
    found.append(
        run.classes.select(polars.lit(arbiter).alias("arbiter"), "class", "accepted", "latency_mean_cycles")
    )
print(polars.concat(found))
