"""The numbers in a program's request, checked, and the words of a refusal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..bandwidth.errors import BadRequestError, RefusedError
from ..bandwidth.pace import Pace
from ..bandwidth.sizes import check_size
from ..units import MB
from .flows import FlowId
from .ledger import Where
from .wire import Answer

__all__ = ["mean_and_factor", "rate_of", "refusal"]


def mean_and_factor(message_bytes: int | Sequence[int] | None, pace: Pace) -> tuple[int | None, float]:
    """The mean of `message_bytes` of a request, rounded down, and the charge for each byte of such messages.

    `message_bytes` may be a list of sizes; the charge is 1 if the sizes are not known one by one. Raises
    BadRequestError.
    """
    if not isinstance(message_bytes, list | tuple):
        check_size("message_bytes", message_bytes)  # type: ignore[arg-type]
        return message_bytes, 1.0  # type: ignore[return-value]
    if not message_bytes:
        raise BadRequestError("message_bytes = []: a size, or a list of sizes")
    for size in message_bytes:
        if size is None:
            raise BadRequestError("message_bytes: None is no size of a list")
        check_size("message_bytes", size)
    return sum(message_bytes) // len(message_bytes), pace.charge_factor(message_bytes)


def rate_of(mb_per_s: float, message_bytes: int | None, *, pace: Pace, longest: int) -> int:
    """A bandwidth in bytes a second, for a flow of a card whose IDTs end with `longest`. Raises BadRequestError."""
    least = -(-pace.mtu_bytes * pace.ticks_per_s // longest)
    good = isinstance(mb_per_s, int | float) and not isinstance(mb_per_s, bool) and abs(mb_per_s) < math.inf
    rate = round(mb_per_s * MB) if good else 0
    most = pace.uncounted(pace.peak, message_bytes)
    if message_bytes is not None and good and least <= rate and rate > most:
        raise BadRequestError(
            f"a request of {mb_per_s!r} MB/s in messages of {message_bytes} bytes: at most {most / MB:.3f}, as a "
            "packet counts as a full one"
        )
    if not (mb_per_s if good else 0) > 0 or not least <= rate <= pace.peak:
        raise BadRequestError(
            f"a request of {mb_per_s!r} MB/s: above 0 (at least {least / MB:g}) and at most "
            f"{pace.peak / MB:.3f}, the peak of a flow"
        )
    return rate


def refusal(
    flow: FlowId, mb_per_s: float, message_bytes: int | None, answer: Answer, *, pace: Pace
) -> RefusedError:
    """The error that says which criterion did not hold, and what is left."""
    where = {
        Where.SOURCE: f"node {answer.place}",
        Where.PORT: f"port {answer.port} of switch {answer.place}",
        Where.TARGET: f"node {answer.place}",
    }[Where(answer.where)]
    left = pace.uncounted(answer.rate, message_bytes) / MB
    return RefusedError(
        f"{mb_per_s:g} MB/s for the {flow} are refused: {where} has {left:g} MB/s left for it",
        where=where,
        left_mb_per_s=left,
    )
