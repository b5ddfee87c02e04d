"""A process that uses virtual networks, and its bundles of endpoints."""

from __future__ import annotations

from enum import IntEnum

from ..bell import Bell
from .driver import SegmentDriver
from .endpoint import Endpoint
from .errors import AmCode, AmError
from .owner import Owner

__all__ = ["AmProcess", "Bundle", "BundleKind", "EventMask"]


class BundleKind(IntEnum):
    """Whether several threads may use a bundle at once. Here they always may: the kind is noted, and no more."""

    AM_SEQ = 0
    AM_PAR = 1


class EventMask(IntEnum):
    """When a bundle's semaphore is posted."""

    AM_NOEVENTS = 0
    AM_NOTEMPTY = 1  # a receive queue of one of its endpoints is no longer empty


class AmProcess(Owner):
    """A process of a node, made by `AM_Init`. `driver`: the node's. `bundles`: those that it has."""

    def __init__(self, driver: SegmentDriver) -> None:
        super().__init__(driver.node, driver.pages)
        self.driver = driver
        self.bundles: list[Bundle] = []

    def ended(self) -> None:
        """Wake whoever waits for an event."""
        for bundle in self.bundles:
            bundle.post()


class Bundle:
    """Endpoints that are polled together, with one semaphore.

    - `endpoints`: in the order of polling; `first` is the place of the one whose turn it is to be polled first.
    - `mask`: its `EventMask`. `posted`: the semaphore, which is binary.
    - `bell`: rung when the semaphore is posted, or an endpoint's page has moved.
    """

    def __init__(self, process: AmProcess, kind: BundleKind) -> None:
        self.process, self.kind = process, kind
        self.endpoints: list[Endpoint] = []
        self.first = 0
        self.mask = EventMask.AM_NOEVENTS
        self.posted = False
        self.bell = Bell(process.driver.bus)
        self.alive = True

    def check(self) -> None:
        """Raise AmError if the process or the bundle is no more."""
        self.process.check()
        if not self.alive:
            raise AmError(AmCode.AM_ERR_NOT_INIT, f"{self.process}: the bundle is no more")

    def post(self) -> None:
        """Post the semaphore."""
        self.posted = True
        self.bell.ring()

    def add(self, endpoint: Endpoint) -> None:
        """Take an endpoint in."""
        self.endpoints.append(endpoint)
        endpoint.wake, endpoint.page.endpoint.moved = self.post, self.bell.ring

    def remove(self, endpoint: Endpoint) -> None:
        """Let an endpoint go."""
        self.endpoints.remove(endpoint)
        self.first = 0
