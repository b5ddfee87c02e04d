"""The element in a process' page of an adapter to which elements are posted (`HcaConfig.wqe`)."""

from __future__ import annotations

from lanikai.hdl.hca.layout import SEND_WQE_BYTES, WindowWord

from .port import AdapterPort

__all__ = ["ElementPage"]

_WORD_BITS = 32
_WORDS = SEND_WQE_BYTES * 8 // _WORD_BITS
_MASK = (1 << _WORD_BITS) - 1


class ElementPage:
    """The words of the element in page `owner`, which all queue pairs of its process share.

    The adapter keeps them, so that those that are the same as in the last element are not written again.
    """

    def __init__(self, port: AdapterPort, owner: int) -> None:
        self._port, self._owner = port, owner
        self._words = [0] * _WORDS

    async def clear(self) -> None:
        """Write zeroes: the words of another process, to whom the page was before, are not to be sent."""
        for word in range(_WORDS):
            await self._port.write(self._owner, WindowWord.WQE + word, 0)
        self._words = [0] * _WORDS

    def write(self, element: int) -> int:
        """Make it `element`, a number of 256 bits. The doorbell is rung by the caller. Returns the words written."""
        count = 0
        for word, old in enumerate(self._words):
            new = element >> word * _WORD_BITS & _MASK
            if new != old:
                self._port.write_now(self._owner, WindowWord.WQE + word, new)
                self._words[word] = new
                count += 1
        return count
