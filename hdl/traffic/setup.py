"""A class's set-up in the terms of an experiment, and the register words that it comes to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from ..config import Config, ConfigError
from .config import TrafficConfig
from .pattern import PERMUTATIONS, permutation
from .ports import CLASS, SPACING_FRACTION, Choice, Mode, VlChoice
from .random import seed_words

__all__ = ["ClassSetup", "class_seeds", "random_spacing", "trace_rows"]

MODES: dict[str, Any] = {
    "random": Mode.RANDOM,
    "periodic": Mode.PERIODIC,
    "on_off": Mode.ON_OFF,
    "trace": Mode.TRACE,
}
VL_CHOICES: dict[str, Any] = {
    "random": VlChoice.RANDOM,
    "in_turn": VlChoice.IN_TURN,
    "by_destination": VlChoice.BY_DESTINATION,
}
CHOICES = ("uniform", "hot_spot", "fixed", "table")
"""Patterns that are no permutation."""
ONE = 1 << SPACING_FRACTION
MAX_WORD = (1 << 32) - 1
MAX_WAIT_CYCLES = (1 << 31) - 1
"""Longest time ahead that a source tells from one that is over: it compares times modulo 2^32."""
NODE_NUMBER_BITS = 10
"""Node numbers in a header (`packet.IDENTITY`)."""


class ClassSetup(Config):
    """The traffic of a class of every node. Loads are in flits a cycle and node."""

    mode: Literal["random", "periodic", "on_off", "trace"] = Field("random", description="`ports.Mode`")
    load: float = Field(
        0.1, gt=0, le=1, description="mean load; on/off: the load while ON; a trace has its own"
    )
    packet_flits: int = Field(40, ge=1, le=1023, description="packet length, header included, flits")
    pattern: str = Field("uniform", description=f"one of {', '.join((*CHOICES, *PERMUTATIONS))}")
    node: int = Field(0, ge=0, le=1023, description="the node of `fixed` and `hot_spot`")
    hot_fraction: float = Field(0.1, ge=0, le=1, description="packets that go to the hot node")
    table: tuple[int, ...] = Field((), description="pattern `table`: the destination of each node")
    vl_first: int = Field(0, ge=0, le=15, description="first VL of the class")
    vl_count: int = Field(1, ge=1, le=16, description="VLs of the class")
    vl_choice: Literal["random", "in_turn", "by_destination"] = Field(
        "random", description="`ports.VlChoice`"
    )
    service_level: int = Field(0, ge=0, le=15, description="service level in the header")
    on_cycles: int = Field(1000, ge=1, lt=1 << 24, description="mean ON period, cycles")
    off_cycles: int = Field(1000, ge=0, lt=1 << 24, description="mean OFF period, cycles")
    interval_cycles: int = Field(
        1000, ge=1, le=MAX_WAIT_CYCLES, description="from frame to frame of a trace, cycles"
    )
    first_frame: int = Field(0, ge=0, lt=32768, description="first row of the trace memory")
    last_frame: int = Field(0, ge=0, lt=32768, description="last row of the trace memory")
    phase_cycles: int = Field(
        0, ge=0, le=MAX_WAIT_CYCLES, description="wait of periodic, on/off and trace classes, cycles"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.pattern not in CHOICES and self.pattern not in PERMUTATIONS:
            raise ValueError(f"pattern = {self.pattern!r}: one of {', '.join((*CHOICES, *PERMUTATIONS))}")
        if self.mode != "trace" and self.spacing > MAX_WORD:
            raise ValueError(
                f"load = {self.load}: packets of {self.packet_flits} flits would be more than 2^20 cycles "
                f"apart"
            )
        if self.last_frame < self.first_frame:
            raise ValueError(f"last_frame = {self.last_frame}: at least first_frame = {self.first_frame}")
        return self

    @property
    def mean_load(self) -> float:
        """Flits a cycle in the long run. On/off has `load` while ON only. A trace's own load is not known here."""
        return self.load * (
            self.on_cycles / (self.on_cycles + self.off_cycles) if self.mode == "on_off" else 1.0
        )

    @property
    def spacing(self) -> int:
        """The SPACING register."""
        births = self.load / self.packet_flits
        return random_spacing(births) if self.mode == "random" else round(ONE / births)

    def destination(self, node: int, config: TrafficConfig) -> int | None:
        """The destination of all packets of `node`; None where each packet has its own.

        Raises ConfigError for a pattern that does not suit the network, or a node that does not exist.
        """
        if self.pattern == "uniform":
            return None
        if self.pattern == "table" and len(self.table) != config.nodes:
            raise ConfigError(
                f"ClassSetup.table has {len(self.table)} destinations: one for each of {config.nodes} nodes"
            )
        if self.pattern in PERMUTATIONS:
            return permutation(self.pattern, config.nodes)[node]
        chosen = self.table[node] if self.pattern == "table" else self.node
        if not 0 <= chosen < config.nodes:
            raise ConfigError(f"ClassSetup: there is no node {chosen}; nodes are 0 to {config.nodes - 1}")
        return None if self.pattern == "hot_spot" else chosen

    def words(self, node: int, config: TrafficConfig) -> list[tuple[str, int]]:
        """(register, word) pairs that set the class up at `node`, in the order of writing.

        A node that would send to itself stays off. Raises ConfigError for settings that the configuration does not
        have.
        """
        link = config.link
        if self.vl_choice != "by_destination" and self.vl_first + self.vl_count > link.vls:
            raise ConfigError(
                f"ClassSetup: VLs {self.vl_first} to {self.vl_first + self.vl_count - 1}: the link has 0 to "
                f"{link.vls - 1}"
            )
        if not link.header_flits <= self.packet_flits <= config.max_packet_flits:
            raise ConfigError(
                f"ClassSetup.packet_flits = {self.packet_flits}: "
                f"{link.header_flits} (the header) to {config.max_packet_flits}"
            )
        if not config.random and self.mode in ("random", "on_off"):
            raise ConfigError(
                f"ClassSetup.mode = {self.mode!r}: the sources have no random numbers (random = False)"
            )
        if not config.trace_frames and self.mode == "trace":
            raise ConfigError(
                "ClassSetup.mode = 'trace': the sources have no trace memory (trace_frames = 0)"
            )
        if self.mode == "trace" and self.last_frame >= config.trace_frames:
            raise ConfigError(
                f"ClassSetup.last_frame = {self.last_frame}: the trace memory has rows 0 to "
                f"{config.trace_frames - 1}"
            )
        fixed = self.destination(node, config)
        mode: Any = Mode.OFF if fixed == node else MODES[self.mode]
        pattern: Any = Choice.FIXED
        if fixed is None:
            pattern = Choice.HOT_SPOT if self.pattern == "hot_spot" else Choice.UNIFORM
        fields = {
            "LENGTH": {"flits": self.packet_flits},
            "SPACING": {"cycles": 0 if self.mode == "trace" else self.spacing},
            "ON": {"cycles": self.on_cycles},
            "OFF": {"cycles": self.off_cycles},
            "DESTINATION": {
                "node": self.node if fixed is None else fixed,
                "fraction": round(self.hot_fraction * 4096),
            },
            "INTERVAL": {"cycles": self.interval_cycles},
            "TRACE": {"first": self.first_frame, "last": self.last_frame},
            "PHASE": {"cycles": self.phase_cycles},
            # Last, as it starts the class.
            "CONTROL": {
                "mode": mode.value,
                "pattern": pattern.value,
                "vl_choice": VL_CHOICES[self.vl_choice].value,
                "vl_first": self.vl_first,
                "vl_count": self.vl_count,
                "service_level": self.service_level,
            },
        }
        return [(name, CLASS[name].pack(**values)) for name, values in fields.items()]


def class_seeds(seed: int, node: int, config: TrafficConfig) -> list[tuple[str, int]]:
    """(register, word) pairs that give every class of `node` random numbers of its own, in the order of writing.

    Class c of node n has stream n + 1024 c of `seed`, so that a class makes the same packets whatever other classes
    there are.
    """
    words = []
    for number in range(config.classes):
        words.append(("SEED_CLASS", number))
        stream = node + (number << NODE_NUMBER_BITS)
        words += [(f"SEED_{place}", word) for place, word in enumerate(seed_words(seed, stream))]
    return words


def random_spacing(births: float) -> int:
    """SPACING of a random class in which a packet is born in a cycle with probability `births`.

    The gaps are 1 + floor(E * SPACING), which exceed g with probability exp(-g / SPACING). That is (1 - births)^g for
    SPACING = -1 / ln(1 - births).
    """
    return 0 if births >= 1 else round(-ONE / math.log1p(-births))


def trace_rows(
    frames_flits: Sequence[int], *, packet_flits: int, interval_cycles: int, regulated: bool
) -> list[tuple[int, int]]:
    """The trace memory's rows (flits, spacing) of frames of so many flits, all their packets' flits counted.

    `regulated` spreads a frame's packets over the interval; otherwise they are born at once. Raises ConfigError for a
    frame that is too large.
    """
    rows = []
    for number, flits in enumerate(frames_flits):
        if not 0 <= flits < 1 << 24:
            raise ConfigError(f"trace: frame {number} has {flits} flits: 0 to {(1 << 24) - 1}")
        packets = max(1, -(-flits // packet_flits))
        rows.append((flits, min(interval_cycles * ONE // packets, MAX_WORD) if regulated else 0))
    return rows
