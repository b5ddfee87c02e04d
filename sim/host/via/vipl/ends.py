"""The codes with which calls of VIPL may end: said at each call, with the reason, and held there.

docs/via-calls.md is made of them. A call that ends with another code is a fault of this library.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from ..errors import VipError, VipReturn

__all__ = ["GONE", "ends_of", "ends_with"]

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
_ENDS: dict[str, dict[VipReturn, str]] = {}
GONE = "the process is gone, or has closed its NIC"


def ends_with(
    *, gone: bool = True, **when: str
) -> Callable[[Callable[_Given, Coroutine[Any, Any, _Found]]], Callable[_Given, Coroutine[Any, Any, _Found]]]:
    """Say when a call ends with a code: the code's name = the case, beside VIP_SUCCESS.

    `gone`: it ends with VIP_ERROR for a process that is gone, too. AssertionError: it has ended with another code.
    """
    ends = {VipReturn[name]: text for name, text in when.items()}
    if gone:
        ends[VipReturn.VIP_ERROR] = GONE + (f"; {ends[VipReturn.VIP_ERROR]}" if "VIP_ERROR" in when else "")

    def held(
        call: Callable[_Given, Coroutine[Any, Any, _Found]],
    ) -> Callable[_Given, Coroutine[Any, Any, _Found]]:
        _ENDS[call.__name__] = ends

        @wraps(call)
        async def checked(*given: _Given.args, **named: _Given.kwargs) -> _Found:
            try:
                return await call(*given, **named)
            except VipError as error:
                if error.code not in ends:
                    raise AssertionError(f"{call.__name__}: ends with {error}, which it may not") from error
                raise

        return checked

    return held


def ends_of(call: str) -> Mapping[VipReturn, str]:
    """The codes of a call beside VIP_SUCCESS, each with its case; VIP_NOT_DONE stands for None."""
    return _ENDS[call]
