"""A failure in the user's own code, as the user wants to see it: file, line and text, without the frames of ours."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

import cocotb

__all__ = ["user_lines"]

_SIM = Path(__file__).resolve().parents[1]
_OURS = tuple(f"{folder}/" for folder in (_SIM, *(_SIM.parent / name for name in ("hdl", "firmware", "api"))))
_LIBRARY = f"{sysconfig.get_path('stdlib')}/"
_COCOTB = f"{Path(cocotb.__file__).resolve().parent}/"


def user_lines(error: BaseException) -> list[str]:
    """The frames of an exception, and of those that it was raised from, that are the user's; none if there are none."""
    frames: list[traceback.FrameSummary] = []
    left: BaseException | None = error
    while left is not None:
        own = [frame for frame in traceback.extract_tb(left.__traceback__) if _is_own(frame.filename)]
        # The cause failed first, and in the inner frames.
        frames, left = own or frames, left.__cause__
    return [line for text in traceback.format_list(frames) for line in text.rstrip("\n").split("\n")]


def _is_own(name: str) -> bool:
    return not (name.startswith((*_OURS, _COCOTB, _LIBRARY, "<frozen")) or "/site-packages/" in name)
