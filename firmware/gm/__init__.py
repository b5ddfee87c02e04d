"""The GM control program (gulati-thesis-2001 4): `start` runs it on a NIC's processor port."""

from .config import GmConfig
from .program import GmProgram, start

__all__ = ["GmConfig", "GmProgram", "start"]
