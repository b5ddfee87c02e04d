"""The initial credits of each consumer at an adapter (yum-2006 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

from lanikai.hdl.config import ConfigError

__all__ = ["initial_credits"]


def initial_credits(
    *, buffer_messages: int, link_bandwidth: int, bandwidths: Sequence[int], best_effort: int | None = None
) -> tuple[list[int], int]:
    """The credits C_i of connections, and C_b of best effort.

    - `buffer_messages`: M, messages that the adapter holds.
    - `link_bandwidth`, `bandwidths`: B, and b_i of each connection, in the same unit.
    - `best_effort`: C_b; None: all that is left, which is the document's bound.

    C_i = b_i M / B, rounded down, and 1 at least: a connection without a credit would never send. The sum of all is at
    most M. Raises ConfigError if there is not so much.
    """
    if buffer_messages < 1:
        raise ConfigError(f"buffer_messages = {buffer_messages}: at least 1")
    if not 0 < sum(bandwidths) <= link_bandwidth and bandwidths:
        raise ConfigError(
            f"bandwidths: {sum(bandwidths)} in all: above 0, and at most the link's {link_bandwidth}"
        )
    found = [max(1, bandwidth * buffer_messages // link_bandwidth) for bandwidth in bandwidths]
    left = buffer_messages - sum(found)
    if left < 0:
        raise ConfigError(
            f"bandwidths: {len(bandwidths)} connections take {sum(found)} credits: at most {buffer_messages} messages "
            "fit into the adapter"
        )
    if best_effort is not None and not 0 <= best_effort <= left:
        raise ConfigError(f"best_effort = {best_effort}: 0 to {left}, as connections leave it")
    return found, left if best_effort is None else best_effort
