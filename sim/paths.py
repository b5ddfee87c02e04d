"""Where things live on disk: the checkout, the build cache."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

__all__ = ["CACHE_VARIABLE", "cache_dir", "checkout"]

CACHE_VARIABLE = "LANIKAI_CACHE_DIR"
"""Environment variable that names the folder of the build cache."""


@cache
def checkout() -> Path | None:
    """The root of the source tree that this package runs from, or None when it is installed from a wheel."""
    root = Path(__file__).resolve().parents[1]
    if (root / "pyproject.toml").is_file() and (root / "hdl" / "nic" / "nic.rdl").is_file():
        return root
    return None


def cache_dir() -> Path:
    """The folder of the build cache; it may not exist yet.

    `$LANIKAI_CACHE_DIR` if set; else `.cache/lanikai` of the checkout, so that nothing is written outside it;
    else the user's cache folder.
    """
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named).expanduser().absolute()
    if root := checkout():
        return root / ".cache" / "lanikai"
    import platformdirs

    return platformdirs.user_cache_path("lanikai", appauthor=False)
