"""Frame sizes of films: files with one frame a line, and the numbers that a reservation for them needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import UserError
from ..user_files import read_text

__all__ = ["burst_bytes", "mean_bytes", "read_frames"]

UNITS = {".bytes": 1, ".bits": 8}
"""Units of a byte, by the end of a file's name."""
FRAME_BYTES_MAX = 1 << 20


def read_frames(path: Path) -> list[int]:
    """Bytes of each frame of a film, from a file with a whole number a line.

    The numbers are bytes in a file that ends in `.bytes`, and bits in one that ends in `.bits`. Raises UserError.
    """
    unit = UNITS.get(path.suffix)
    if unit is None:
        raise UserError(f"film {str(path)!r}: its name ends in .bytes or .bits, the unit of its frames")
    frames = []
    for number, line in enumerate(read_text(path, "film").splitlines(), 1):
        text = line.strip()
        if not text:
            continue
        # Python reads no number of thousands of digits.
        good = text.isascii() and text.isdigit() and len(text) < 4000
        size = -(-int(text) // unit) if good else 0
        if not 1 <= size <= FRAME_BYTES_MAX:
            raise UserError(
                f"film {str(path)!r}, line {number}: {text[:40]!r} is no frame of 1 to {FRAME_BYTES_MAX} bytes"
            )
        frames.append(size)
    if not frames:
        raise UserError(f"film {str(path)!r}: it has no frame")
    return frames


def mean_bytes(frames: Sequence[int]) -> int:
    """`message_bytes` of a request: rounded down."""
    return sum(frames) // len(frames)


def burst_bytes(frames: Sequence[int], *, interval_us: float, mb_per_s: float) -> int:
    """`burst_bytes` of a request: the least b such that the frames of any time t, one each `interval_us`, have at most
    b + `mb_per_s` t bytes."""
    credit = mb_per_s * interval_us
    behind = most = 0.0
    for size in frames:
        behind = max(0.0, behind - credit) + size
        most = max(most, behind)
    return int(-(-most // 1))
