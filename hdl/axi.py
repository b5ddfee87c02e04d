"""AXI4 and AXI4-Lite signatures (ARM IHI 0022), seen by the manager. Member names are the standard's.

Only what this project's ports use: no locks, caches, QoS or user signals; the NIC's DMA has one ID at a time.
"""

from __future__ import annotations

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Axi4LiteSignature", "Axi4Signature"]


class Axi4Signature(wiring.Signature):
    """AXI4. `data_bits` 32 or 64, addresses of `address_bits`, IDs of `id_bits`.

    Members: `awid awaddr awlen awsize awburst awvalid awready`, `wdata wstrb wlast wvalid wready`,
    `bid bresp bvalid bready`, `arid araddr arlen arsize arburst arvalid arready`,
    `rid rdata rresp rlast rvalid rready`.
    """

    def __init__(self, *, data_bits: int, address_bits: int = 32, id_bits: int = 2) -> None:
        self.data_bits, self.address_bits, self.id_bits = data_bits, address_bits, id_bits
        address = {"id": id_bits, "addr": address_bits, "len": 8, "size": 3, "burst": 2}
        members: dict[str, wiring.Member] = {}
        for channel in ("aw", "ar"):
            members |= {f"{channel}{name}": Out(width) for name, width in address.items()}
            members |= {f"{channel}valid": Out(1), f"{channel}ready": In(1)}
        members |= {"wdata": Out(data_bits), "wstrb": Out(data_bits // 8), "wlast": Out(1)}
        members |= {"wvalid": Out(1), "wready": In(1)}
        members |= {"bid": In(id_bits), "bresp": In(2), "bvalid": In(1), "bready": Out(1)}
        members |= {"rid": In(id_bits), "rdata": In(data_bits), "rresp": In(2), "rlast": In(1)}
        members |= {"rvalid": In(1), "rready": Out(1)}
        super().__init__(members)


class Axi4LiteSignature(wiring.Signature):
    """AXI4-Lite of 32 data bits and `address_bits`.

    Members: `awaddr awprot awvalid awready`, `wdata wstrb wvalid wready`, `bresp bvalid bready`,
    `araddr arprot arvalid arready`, `rdata rresp rvalid rready`.
    """

    def __init__(self, *, address_bits: int) -> None:
        self.address_bits = address_bits
        members: dict[str, wiring.Member] = {}
        for channel in ("aw", "ar"):
            members |= {f"{channel}addr": Out(address_bits), f"{channel}prot": Out(3)}
            members |= {f"{channel}valid": Out(1), f"{channel}ready": In(1)}
        members |= {"wdata": Out(32), "wstrb": Out(4), "wvalid": Out(1), "wready": In(1)}
        members |= {"bresp": In(2), "bvalid": In(1), "bready": Out(1)}
        members |= {"rdata": In(32), "rresp": In(2), "rvalid": In(1), "rready": Out(1)}
        super().__init__(members)
