"""Places on disk: the checkout, the build cache."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

__all__ = ["CACHE_VARIABLE", "cache_dir", "checkout", "keep_caches_together"]

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


def keep_caches_together() -> None:
    """Have the libraries of this process and its children keep their caches beside the build cache.

    So a checkout writes nothing outside its tree. Where the user has said otherwise, that holds. Matplotlib takes its
    own variable, for fonts and settings; Amaranth's WebAssembly tools the general one.
    """
    if CACHE_VARIABLE in os.environ or checkout():
        folder = cache_dir()
        os.environ.setdefault("MPLCONFIGDIR", str(folder / "matplotlib"))
        os.environ.setdefault("XDG_CACHE_HOME", str(folder / "xdg"))
