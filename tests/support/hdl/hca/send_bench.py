"""An adapter whose link takes everything, for tests of its send side, and the packets that leave it."""

from __future__ import annotations

import random

from amaranth.sim import Simulator
from lanikai.hdl.config import preset
from lanikai.hdl.config.hca import HcaConfig
from lanikai.hdl.hca.hca import Hca
from lanikai.hdl.hca.layout import TRAILER_LAYOUT
from lanikai.hdl.hca.trailer_crc import trailer_crc
from lanikai.hdl.packet import HEADER_LAYOUT

from support.hdl.hca.adapter_host import AdapterHost
from support.hdl.link_ends import LinkReceiver

__all__ = ["CONFIG", "NODE", "PEER", "POSTED", "Bench", "packets"]

CONFIG = preset(HcaConfig, "tiny")
POSTED = CONFIG.replace(wqe="posted", posted_entries=16)
"""The same, with elements posted, as many as the rings of `AdapterHost` hold."""
NODE, PEER = 3, 5


def unpack(layout, bits):
    return {name: bits >> place.offset & (1 << place.width) - 1 for name, place in layout}


def packets(flits):
    """The packets in flits of mixed VLs: (vl, header, payload, trailer); each must be whole, with a good length."""
    begun, whole = {}, []
    for flit in flits:
        assert flit.head == (flit.vl not in begun)
        begun.setdefault(flit.vl, []).append(flit.data)
        if flit.tail:
            words = begun.pop(flit.vl)
            header, trailer = unpack(HEADER_LAYOUT, words[0]), unpack(TRAILER_LAYOUT, words[-1])
            payload = b"".join(word.to_bytes(16, "little") for word in words[1:-1])
            assert len(payload) == -(-header["length"] // 16) * 16
            trailer["good"] = trailer["crc"] == trailer_crc(words[0], payload, words[-1], CONFIG.link)
            assert not any(payload[header["length"] :])
            whole.append((flit.vl, header, payload[: header["length"]], trailer))
    assert not begun
    return whole


class Bench:
    """An adapter, its host, and a link that takes everything."""

    def __init__(self, *, seed=1, config=CONFIG, credits=8, stall=0.0, credit_stall=0.0, **host):
        print(f"seed {seed}")
        self.rng = random.Random(seed)
        self.config = config
        self.hca = Hca(config, downstream_flits=credits)
        self.host = AdapterHost(self.hca, rng=self.rng, stall=stall, **host)
        self.link = LinkReceiver(
            self.hca.tx, vls=config.link.vls, depth=credits, rng=self.rng, stall=credit_stall
        )
        self.simulator = Simulator(self.hca)
        self.simulator.add_clock(1e-6)
        self.host.add(self.simulator)
        self.simulator.add_testbench(self.link.process, background=True)

    def run(self, script):
        async def bench(ctx):
            ctx.set(self.hca.node, NODE)
            await self.host.set_queue(ctx, 0, 1)
            await self.host.set_region(ctx, 1, 1)
            await self.host.route(ctx, PEER, 0x123456789AB)
            await script(ctx)

        self.simulator.add_testbench(bench)
        self.simulator.run()

    def fill(self, address, count):
        data = self.rng.randbytes(count)
        self.host.memory[address : address + count] = data
        return data
