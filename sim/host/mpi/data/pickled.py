"""Python objects as the bytes of messages."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from ..errors import BufferKindError
from .buffers import Data
from .request import Request

__all__ = ["as_object", "packed", "unpacked"]


def packed(obj: Any, what: str) -> Data:
    """An object's pickle. Raises BufferKindError, which begins with `what`, for one that has none."""
    try:
        content = pickle.dumps(obj, protocol=5)
    except Exception as error:
        raise BufferKindError(f"{what}: {type(obj).__name__} cannot be pickled: {error}") from None
    return Data(memoryview(content), np.dtype("u1"), len(content))


def unpacked(content: Any, what: str) -> Any:
    """The object of a pickle. Raises BufferKindError for a message that is none."""
    try:
        return pickle.loads(content)
    except Exception as error:
        raise BufferKindError(
            f"{what}: the message is no pickled object: {error}; receive it with Recv"
        ) from None


def as_object(request: Request, buffer: Data | None = None) -> Request:
    """Let `wait` return the object that the receive gets: into `buffer`, or memory of its own. It is None for
    PROC_NULL."""

    def get() -> Any:
        content = request.received if buffer is None else buffer.view
        return None if content is None else unpacked(content, request.description)

    request.value = get
    return request
