"""The mapper's raw packets over the segment driver of its node."""

from __future__ import annotations

from collections.abc import Callable

from lanikai.firmware.am.words import Notice
from lanikai.hdl.packet import Header

from ..driver import SegmentDriver

__all__ = ["DriverPort"]


class DriverPort:
    """A `RawPort` over a `SegmentDriver`, whose raw packets it takes. Members as in `RawPort`."""

    def __init__(self, driver: SegmentDriver) -> None:
        self.node = driver.node
        self.hear: Callable[[int, bytes], None] = lambda route, data: None
        self._driver = driver
        driver.hear_raw = self._heard

    def _heard(self, notice: Notice, payload: bytes) -> None:
        self.hear(Header.unpack(notice.header).route, payload)

    async def send(self, route: int, data: bytes) -> None:
        """Send a raw packet; returns when it has left the card."""
        await self._driver.send_raw(route, data)

    async def set_route(self, node: int, route: int | None) -> None:
        """Have messages for a node go by a route; None: by none."""
        await self._driver.set_route(node, route)
