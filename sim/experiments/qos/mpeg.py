"""Video streams: real frame sizes, scaled to a stated mean rate, in packets of 40 flits (yum-2006 6.2).

The document's seven MPEG-2 traces are not public. Films of `sim/experiments/video` stand in for them: their frame sizes
vary as they do, and their mean is scaled to the rate that an experiment states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from lanikai.hdl.config import ConfigError

from ...manager.frames import read_frames
from .messages import PACKET_FLITS, Message, check_positive, check_rate

__all__ = ["FILMS", "FOLDER", "FRAME_HZ", "MIN_FLITS", "frame_flits", "mpeg", "peak_rate", "read_film"]

FOLDER = Path(__file__).parents[1] / "video"
FILMS = ("terminator2.bits", "starwars-mpeg1.bits", "silence-mpeg4.bytes", "jurassic-mpeg4.bytes")
"""Films that streams take in turn."""
FRAME_HZ = 30
"""Frames a second of every stream, whatever the film's own rate was."""
MIN_FLITS = 3
"""The shortest packet of 128-bit flits: header, one flit of payload, CRC."""


def read_film(name: str) -> list[int]:
    """Bytes of each frame of a film of `FOLDER`, or of the user's file of that path. Raises UserError."""
    path = FOLDER / name
    return read_frames(path if path.exists() else Path(name))


def frame_flits(frames: Sequence[int], *, rate: float, interval_cycles: int) -> list[int]:
    """Flits of each frame on the wire, scaled so that their mean is `rate` x `interval_cycles`.

    A frame has its part of the mean by its bytes, rounded, and at least `MIN_FLITS`. Headers and CRCs are within that
    number, so that the rate is that of the link. Raises ConfigError for no frames or a bad rate or interval.
    """
    check_rate("mpeg: rate", rate)
    check_positive("mpeg: interval_cycles", interval_cycles)
    if not frames:
        raise ConfigError("mpeg: frames is empty: at least one frame")
    scale = rate * interval_cycles * len(frames) / sum(frames)
    return [max(MIN_FLITS, round(size * scale)) for size in frames]


def peak_rate(frames: Sequence[int], *, rate: float, interval_cycles: int) -> float:
    """The rate of the largest frame over its interval, flits a cycle: p of a stream with a regulator."""
    return max(frame_flits(frames, rate=rate, interval_cycles=interval_cycles)) / interval_cycles


def mpeg(
    frames: Sequence[int],
    *,
    rate: float,
    interval_cycles: int,
    regulator: bool = True,
    first_frame: int = 0,
    first_cycle: int = 0,
    packet_flits: int = PACKET_FLITS,
    last_at_end: bool = False,
) -> Iterator[Message]:
    """Packets of a stream that shows a frame every `interval_cycles`, and begins anew at the end of the film.

    Frame k of the stream comes at `first_cycle` + k `interval_cycles`. It is cut into packets of `packet_flits`, but
    for the last one. A rest below `MIN_FLITS` becomes a packet of `MIN_FLITS`. Without the regulator all packets of a
    frame are due at its time. With it they are due evenly over its interval, the first one at its time.

    - `frames`: bytes of the film's frames.
    - `rate`: mean, flits a cycle.
    - `first_frame`: frame of the film with which the stream begins, so that streams of one film differ.
    - `last_at_end`: with the regulator, all packets of a frame are due a packet's part of the interval later. Then the
      last one of every frame is due at the interval's end. Else frames of more packets end later in it.

    Raises ConfigError as `frame_flits`.
    """
    sizes = frame_flits(frames, rate=rate, interval_cycles=interval_cycles)
    return _packets(
        sizes, interval_cycles, regulator, first_frame, first_cycle, packet_flits, int(last_at_end)
    )


def _packets(
    sizes: Sequence[int],
    interval: int,
    regulator: bool,
    first_frame: int,
    first_cycle: int,
    most: int,
    later: int,
) -> Iterator[Message]:
    number = 0
    while True:
        flits = sizes[(first_frame + number) % len(sizes)]
        packets = -(-flits // most)
        begin = first_cycle + number * interval
        for k in range(packets):
            at = begin + ((k + later) * interval // packets if regulator else 0)
            size = min(most, flits - k * most)
            yield Message(at, max(MIN_FLITS, size), number, last=k == packets - 1)
        number += 1
