"""The GM control program (gulati-thesis-2001 4)."""

from .config import GmConfig
from .program import GmProgram

__all__ = ["GmConfig", "GmProgram"]
