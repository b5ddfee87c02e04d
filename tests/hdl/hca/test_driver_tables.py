"""VL tables that a driver writes share the adapter's link among its VLs."""

from types import SimpleNamespace

from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.sim.host.hca.driver import HcaDriver
from support.hdl.hca.adapter_host import DATA
from support.hdl.hca.send_bench import PEER, Bench

TINY = preset(HcaConfig, "tiny")
# Packets pile up at the link: the engine is faster.
CONFIG = TINY.replace(
    link=TINY.link.replace(rate_num=1, rate_den=4), class_queue_entries=64, vl_arbiter="table_fast"
)
MESSAGES, FLITS = 16, 6
EVEN = {"high": [], "low": [(0, 1), (1, 1)]}
THREE = {"high": [(0, 3), (1, 1)], "low": []}
ONE = {"high": [(1, 1)], "low": [(0, 1)]}
PHASES = [(THREE, 45), (EVEN, 30), (ONE, 0), (THREE, 45)]
"""Tables, and flits of VL 0 of 60 that are sent with them."""


def test_the_link_is_shared_by_the_tables_that_were_written_last():
    bench = Bench(config=CONFIG, credits=80, latency=2, ring_log2=6)
    host, begins = bench.host, []

    async def script(ctx):
        async def write(name, **fields):
            await host.set(ctx, name, **fields)

        driver = HcaDriver(SimpleNamespace(registers=SimpleNamespace(write=write)), CONFIG)
        before = None
        for vl in range(2):
            await host.open(ctx, vl, owner=1, traffic_class=vl, peer=(PEER, vl))
        for tables, _ in PHASES:
            # After the first time the entries that differ are written alone.
            await driver.write_tables(**tables, limit=255, before=before)
            before = tables["high"], tables["low"]
            begins.append(len(bench.link.flits))
            for vl in range(2):
                for _ in range(MESSAGES):
                    host.element(
                        vl,
                        destination=PEER,
                        destination_qp=7,
                        vl=vl,
                        bytes=16 * (FLITS - 2),
                        address=DATA,
                        region=1,
                    )
                await host.doorbell(ctx, vl)
            await host.rest(ctx)
        assert await host.count(ctx, "MESSAGES_SENT") == len(PHASES) * 2 * MESSAGES
        assert await host.count(ctx, "REFUSED") == 0

    bench.run(script)
    for begin, (_, share) in zip(begins, PHASES, strict=True):
        # Both VLs have packets when two are on the link, and the one with the larger share has not sent all yet.
        vls = [flit.vl for flit in bench.link.flits[begin + 2 * FLITS :][:60]]
        assert abs(vls.count(0) - share) <= 2
