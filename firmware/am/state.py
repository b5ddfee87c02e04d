"""The state that the parts of the program share: frames, engines, and what they do in the next pass of its loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from lanikai.hdl.config import NicConfig
from lanikai.hdl.packet import Header

from ..processor import Processor
from .card.engines import HostDma, ReceiveEngine, SendEngine
from .card.script import Script
from .config import VirtualNetworkConfig
from .endpoints import Frame, FrameState
from .layout import HEADER_BYTES, AmLayout
from .places import KEEP_SCANS, Places
from .schedule import Turns

__all__ = ["AmState", "header_words"]

NO_ROUTE = (1 << 48) - 1
"""The route of a node to which none leads, in a driver's command."""


class AmState:
    """The state of the program on the card of `node`.

    - `script`: the accesses of the next pass. `then(function)`: called after it, with what has been read.
    - `host_dma`, `send`, `receive`: the engines.
    - `frames`: by number, from 1. `resident`: endpoint -> its frame, from the beginning of its load to the end of its
      unload. `known`: endpoints that exist.
    - `routes`: node -> source route.
    - `turns`: whose turn it is to send. `places`: whose turn it is at a queue that was full.
    - `now_ticks`: RTC at the last look.
    - `drops`: packets and doorbells thrown away, by the reason.
    - `advanced_cycle`: when a message or a page last moved on.
    - `look(frame)`: called when something of a frame has ended, in case it is to be unloaded (`Paging`).
    """

    def __init__(
        self,
        processor: Processor,
        nic: NicConfig,
        config: VirtualNetworkConfig,
        node: int,
        routes: dict[int, int],
    ) -> None:
        self.processor, self.nic, self.config, self.node = processor, nic, config, node
        self.layout = layout = AmLayout(nic, config)
        self.routes = routes
        self.script = Script(processor)
        self.host_dma, self.send = HostDma(), SendEngine()
        buffers = [layout.receive_buffer(index) for index in range(config.receive_buffers)]
        self.receive = ReceiveEngine(buffers, nic.mtu_bytes)
        self.send_buffers = [layout.send_buffer(index) for index in range(config.send_buffers)]
        self.frames = {number: Frame(layout, number) for number in range(1, config.frames + 1)}
        self.resident: dict[int, Frame] = {}
        self.known: set[int] = set()
        self.turns = Turns(config.loiter_messages)
        self.places = Places(
            config.queue_entries,
            most=layout.places,
            keep_ticks=KEEP_SCANS * layout.scan_ticks,
            modulus=1 << nic.rtc_bits,
        )
        self.now_ticks = 0
        self.drops: Counter[str] = Counter()
        self.advanced_cycle = 0
        self.look: Callable[[Frame], None] = lambda frame: None
        self._then: list[Callable[[], None]] = []

    def then(self, function: Callable[[], None]) -> None:
        """Call a function when the script has been carried out."""
        self._then.append(function)

    def carried_out(self) -> None:
        """The script has been carried out."""
        functions, self._then = self._then, []
        for function in functions:
            function()

    @property
    def looking(self) -> bool:
        """Whether something waits for the next pass."""
        return bool(self._then)

    def advance(self) -> None:
        """A message or a page has moved on."""
        self.advanced_cycle = self.processor.port.cycle

    def at_home(self, endpoint: int) -> Frame | None:
        """The frame of an endpoint that may send and receive."""
        frame = self.resident.get(endpoint)
        return frame if frame is not None and frame.state is FrameState.RESIDENT else None


def header_words(header: Header) -> list[int]:
    """A header's words of SRAM."""
    bits = header.pack()
    return [bits >> 8 * place & 0xFFFFFFFF for place in range(0, HEADER_BYTES, 4)]
