"""Several of VIA's tests in one run, one after the other on the same cards, which are as new before each."""

from support.system.via_attack_points import attacks
from support.system.via_fault_points import closing, deaths, refusals
from support.system.via_points import both_ways, messages, rdma

POINTS = {point.__name__: point for point in (attacks, both_ways, closing, deaths, messages, rdma, refusals)}


async def parts(cluster, spec):
    """The results of `spec["parts"]` by name: name -> (coroutine, settings). All have the programs of `config`."""
    return {
        name: await POINTS[point](cluster, {**settings, "config": spec["config"]})
        for name, (point, settings) in spec["parts"].items()
    }
