"""The version of Lanikai: from git in a source tree, else that with which it was installed."""

from __future__ import annotations

import re
import subprocess
import time
from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path

from .paths import checkout

__all__ = ["own_version", "tree_version"]

NODE_DIGITS = 9
"""Digits of a commit's name in a version, as setuptools-scm has them."""
UNKNOWN = "0.0"
"""The version of a tree that is neither installed nor in git."""


@cache
def own_version() -> str:
    """The version of this process's code.

    A source tree asks git, since its code changes without a new installation. A wheel bears the version that it was
    built with, and so does a tree without git. `UNKNOWN` where neither is known.
    """
    root = checkout()
    found = tree_version(root) if root else None
    if found:
        return found
    try:
        return installed_version("lanikai")
    except PackageNotFoundError:
        return UNKNOWN


def tree_version(root: Path) -> str | None:
    """The version that setuptools-scm gives a wheel of the git tree at `root`; None where git cannot tell.

    - On a tag `v1.2.3` it is 1.2.3.
    - Five commits later it begins with 1.2.4.dev5, on the way to the next. The commit's name follows.
    - Without any tag it begins with 0.1 and the number of commits.
    - With changes that are not committed, today's date stands at the end.
    """
    top = _git(root, "rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() != root.resolve():
        return None  # a copy within a repository of somebody else's
    node, changes = (
        _git(root, "rev-parse", "HEAD"),
        _git(root, "status", "--porcelain", "--untracked-files=no"),
    )
    if node is None:
        return None
    local = f"g{node[:NODE_DIGITS]}" + (time.strftime(".d%Y%m%d", time.gmtime()) if changes else "")
    described = _git(root, "describe", "--tags", "--long", "--match", "*[0-9]*")
    if described is None:
        return f"0.1.dev{_git(root, 'rev-list', '--count', 'HEAD')}+{local}"
    tag, commits, _ = described.rsplit("-", 2)
    tag = tag.removeprefix("v")
    if commits == "0" and not changes:
        return tag
    following = re.sub(r"\d+$", lambda last: str(int(last[0]) + 1), tag)
    return f"{following}.dev{commits}+{local}"


def _git(root: Path, *arguments: str) -> str | None:
    """The output of git; None if it is not there or fails."""
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
