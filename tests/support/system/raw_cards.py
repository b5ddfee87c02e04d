"""Raw packets on real cards without firmware: a coroutine that drives the processor's port, for the mapper's tests.

It does what the firmware of virtual networks does for the driver's raw packets, without host and bus.
"""

from __future__ import annotations

from lanikai.firmware import registers
from lanikai.firmware.lock import Lock
from lanikai.hdl.nic.ports import SRAM_BASE
from lanikai.hdl.packet import Header, Kind

SEND_AT, RECEIVE_AT = SRAM_BASE, SRAM_BASE + 0x8000
HEADER_WORDS = 4


class RawCard:
    """A `RawPort` of the mapper on a node of a cluster whose cards have no firmware.

    - `tables`: the routes that were set.
    - `data`: data packets that came on VL 0: pairs of source and sequence.
    - `dead`: neither sends nor hears any more; the card still takes packets from the wire.
    """

    def __init__(self, cluster, number):
        self.node, self.clock = number, cluster.clock
        self.hear = lambda route, data: None
        self.tables, self.data, self.dead = {}, [], False
        self._port = cluster.nodes[number].processor
        self._mtu = cluster.config.nic.mtu_bytes
        self._vl = cluster.config.nic.link.vls - 1
        self._turn, self._access = Lock(self.clock.flag), Lock(self.clock.flag)
        self._sent = self.clock.flag()
        self.clock.spawn(self._run(), f"raw{number}")

    async def _write(self, name, **fields):
        await self._port.write(registers.address(name), registers.pack(name, **fields))

    async def _read(self, name):
        return registers.unpack(name, await self._port.read(registers.address(name)))

    async def _arm(self):
        await self._write("RECEIVE_ADDRESS", address=RECEIVE_AT)
        await self._write("RECEIVE_CONTROL", bytes=self._mtu)

    async def _run(self):
        events = registers.pack("ISR", receive=1, send=1)
        async with self._access:
            await self._write("IMR", mask=events)
            await self._arm()
        while True:
            await self._port.event()
            packet = None
            async with self._access:
                seen = await self._read("ISR")
                await self._write("ISR", receive=seen["receive"], send=seen["send"])
                if seen["receive"]:
                    packet = await self._take()
            if seen["send"]:
                self._sent.set()
            if packet is not None:
                header, payload = packet
                if header.kind is Kind.DATA:
                    self.data.append((header.source, header.sequence))
                elif not self.dead:
                    self.hear(header.route, payload)

    async def _take(self):
        words = [await self._port.read(RECEIVE_AT + 4 * place) for place in range(HEADER_WORDS)]
        header = Header.unpack(sum(word << 32 * place for place, word in enumerate(words)))
        payload = b""
        if header.kind is not Kind.DATA:
            for at in range(0, header.length, 4):
                payload += (await self._port.read(RECEIVE_AT + 16 + at)).to_bytes(4, "little")
        await self._arm()
        return header, payload

    async def send(self, route, data):
        if not self.dead:
            await self._send(
                Header(kind=Kind.PROBE, route=route, source=self.node, length=len(data)), data, self._vl
            )

    async def send_data(self, there, sequence, length):
        """Send a packet of data to a node by the route that was set. Returns whether there is one."""
        route = self.tables.get(there)
        if route is None:
            return False
        header = Header(route=route, source=self.node, destination=there, sequence=sequence, length=length)
        await self._send(header, b"", 0)
        return True

    async def _send(self, header, data, vl):
        bits = header.pack()
        words = [bits >> 32 * place & 0xFFFFFFFF for place in range(HEADER_WORDS)]
        words += [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]
        async with self._turn:
            self._sent.clear()
            async with self._access:
                for place, word in enumerate(words):
                    await self._port.write(SEND_AT + 4 * place, word)
                await self._write("SEND_ADDRESS", address=SEND_AT)
                await self._write("SEND_CONTROL", bytes=header.length, vl=vl)
            await self._sent.wait()

    async def set_route(self, node, route):
        self.tables.pop(node, None)
        if route is not None:
            self.tables[node] = route
