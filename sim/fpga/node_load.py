"""node-messages: what the design `node` measures, on a board or in simulation.

The card fetches messages from host memory, sends each through the router back to itself, and writes it to host memory
again. Its own clock says how long that takes.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self

from lanikai.hdl.board.node.layout import (
    AREA_BYTES,
    COMMAND,
    DESTINATION,
    RESULT,
    SOURCE,
    Result,
    Window,
)
from lanikai.hdl.config import Config
from lanikai.hdl.nic.blocks import HOST_REGISTERS
from lanikai.hdl.packet import Header
from pydantic import Field, model_validator

from ..experiments.framework.base import Claim, Outcome, Point, Size
from ..experiments.framework.parameters import parse
from ..units import mb_per_s
from .size import BoardExperiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .node import NodeSize

__all__ = ["MESSAGES", "NodeLoad", "NodeLoadParameters", "measure"]

FLOW = 0x5A5
"""A number that no idle wire has, for the header."""
LOOP_ROUTE = (1, 0)
"""Output ports of a message: by the port whose output is its own input, then back to the card."""
SIZES = {"quick": [4, 64, 1024], "full": [4, 8, 16, 32, 64, 128, 256, 512, 1024]}
MESSAGES = {"quick": 50, "full": 1000}


class Access(Protocol):
    """The design, by whatever way."""

    seed: int

    async def begin(self) -> None:
        """Bring it to the state after a reset."""

    async def write(self, node: int, address: int, *words: int) -> None:
        """Write words."""

    async def read(self, node: int, address: int, words: int = 1) -> list[int]:
        """Read words."""

    def took(self, cycles: int) -> None:
        """Note how long the card's work took."""

    async def pause(self) -> None:
        """Wait a little. Raises if it has been long enough."""


class NodeLoadParameters(Config):
    """Parameters that a host may choose."""

    message_bytes: list[int] = Field(
        [],
        description="bytes of the messages, a point each; empty: those of the size",
        json_schema_extra={"range": f"list of multiples of 4, each 4 to {AREA_BYTES}"},
    )
    messages: int | None = Field(
        None,
        ge=1,
        le=65535,
        description=f"messages of a point; null: {MESSAGES['quick']}, or {MESSAGES['full']} with --full",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for number in self.message_bytes:
            if not 4 <= number <= AREA_BYTES or number % 4:
                raise ValueError(f"message_bytes = {number}: a multiple of 4, 4 to {AREA_BYTES}")
        return self


async def measure(access: Access, spec: Mapping[str, Any]) -> dict[str, int]:
    """Have the card send `messages` of `message_bytes`, whose bytes follow from the seed.

    Returns the program's results (`Result`, lower case), and `wrong_words`: those in host memory that are not what they
    should be, in the whole area: received, or as before.
    """
    count, length = int(spec["messages"]), int(spec["message_bytes"])
    # Messages take places one behind the other, and then the first ones again.
    used = min(count, AREA_BYTES // length) * length // 4
    await access.begin()
    memory = Window.HOST_MEMORY
    # What is received must not be what is there already: to clear all would take as long as everything else.
    before = await access.read(memory, DESTINATION, AREA_BYTES // 4)
    rng = random.Random(access.seed)
    words = [rng.getrandbits(32) for _ in range(used)]
    sent = [word ^ (word == old) for word, old in zip(words, before, strict=False)]
    await access.write(memory, SOURCE, *sent)
    hop_bits = int(spec["hop_bits"])
    route = sum(port << hop_bits * i for i, port in enumerate(LOOP_ROUTE))
    header = Header(route=route, flow=FLOW, length=length).pack()
    await access.write(memory, COMMAND, *(header >> 32 * i & 0xFFFF_FFFF for i in range(4)), count, length)
    await access.write(Window.DOORBELLS, 0, 1)
    interrupts = HOST_REGISTERS["HOST_ISR"]
    while not interrupts.unpack((await access.read(Window.HOST_REGISTERS, interrupts.offset))[0])["firmware"]:
        await access.pause()
    words = await access.read(memory, RESULT, len(Result))
    access.took(words[Result.SPAN_CYCLES])
    got = await access.read(memory, DESTINATION, AREA_BYTES // 4)
    wrong = sum(mine != other for mine, other in zip(got, sent + before[used:], strict=True))
    return {one.name.lower(): words[one] for one in Result} | {"wrong_words": wrong}


class NodeLoad(BoardExperiment):
    """Messages of a card to itself, on the design of `size`."""

    name = "node-messages"
    asks = "How long does a message take from host memory through card and router back to host memory?"
    source = "the project's own: docs/fpga.md"
    entry = "lanikai.sim.fpga.node_load:measure"
    Parameters = NodeLoadParameters
    host_sets = tuple(NodeLoadParameters.model_fields)

    def __init__(self, size: NodeSize) -> None:
        self.size = size

    def parameters(self, settings: Sequence[str]) -> Any:
        """The parameters with `settings`, `key=value` each. Raises UserError."""
        return parse(self, settings)

    def points(self, parameters: NodeLoadParameters, size: Size) -> list[Point]:
        """A point for each length."""
        count = MESSAGES[size] if parameters.messages is None else parameters.messages
        return [
            Point(
                label=f"{length} bytes",
                parameters={"message_bytes": length, "messages": count},
                spec={
                    "message_bytes": length,
                    "messages": count,
                    "hop_bits": self.size.design().nic.link.hop_bits,
                },
            )
            for length in parameters.message_bytes or SIZES[size]
        ]

    def system(self, parameters: Any, point: Point) -> Any:
        """The design without its line."""
        from .node_system import NodeSystemConfig

        return NodeSystemConfig(node=self.size.design())

    def results(self, parameters: Any, point: Point, measured: Mapping[str, Any]) -> dict[str, Any]:
        """Times of a message, the bandwidth, and everything that was wrong."""
        count, span = measured["messages"], measured["span_cycles"]
        errors = ("wrong_headers", "crc_errors", "length_errors", "wrong_words")
        return {
            "latency_mean_cycles": measured["sum_cycles"] / count,
            "latency_min_cycles": measured["least_cycles"],
            "latency_max_cycles": measured["most_cycles"],
            "bandwidth_mb_per_s": mb_per_s(
                count * point.parameters["message_bytes"], span, self.size.clock_hz
            ),
            **{name: measured[name] for name in errors},
        }

    def claims(self, parameters: Any, outcomes: Sequence[Outcome]) -> list[Claim]:
        """Nothing is lost or changed."""
        errors = ("wrong_headers", "crc_errors", "length_errors", "wrong_words")
        return [
            Claim.every(
                "every message comes back whole, in order, and nothing else is written",
                [not any(one.results[name] for name in errors) for one in outcomes],
            )
        ]

    def plot(self, parameters: Any, outcomes: Sequence[Outcome], figure: Figure) -> None:
        """Mean time against length."""
        axes = figure.subplots()
        axes.plot(
            [one.point.parameters["message_bytes"] for one in outcomes],
            [one.results["latency_mean_cycles"] for one in outcomes],
            "o-",
        )
        axes.set_xlabel("message, bytes")
        axes.set_ylabel("time, cycles")
