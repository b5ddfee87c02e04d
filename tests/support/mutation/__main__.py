"""`python -m support.mutation [OPTION ...] [FILE ...]`: mutants of files of the RTL, and which of them their tests and
proofs kill."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from .own_tests import own_tests, rtl_files
from .places import ROOT

CACHE = ROOT / ".cache" / "mutation"
RESULT = ROOT / "docs" / "mutation.json"


def main() -> int:
    """Run it. Returns the exit status: 0, 1 if a mutant was not killed, 2 for wrong input."""
    parser = argparse.ArgumentParser(prog="python -m support.mutation", description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="files of hdl/; without one, all")
    parser.add_argument("--seed", type=int, default=1, help="seed of the choice of mutants (default: 1)")
    parser.add_argument("--count", type=int, default=20, help="mutants a file (default: 20)")
    parser.add_argument("--minutes", type=float, default=None, help="begin no file after this time")
    parser.add_argument("--budget", type=float, default=None, help="processor seconds of one mutant's tests")
    parser.add_argument(
        "--test", action="append", help="run only the survivors of earlier runs, against this new test"
    )
    parser.add_argument("--json", type=Path, default=RESULT, help="file that the results go to")
    given = parser.parse_args()
    unknown = [name for name in given.files if name not in rtl_files()]
    if unknown:
        print(f"error: {unknown[0]}: no file of hdl/; name one as hdl/link.py", file=sys.stderr)
        return 2
    if given.count < 1:
        print(f"error: --count {given.count}: at least 1", file=sys.stderr)
        return 2
    os.environ["CI"] = "1"
    os.environ.setdefault("LANIKAI_CACHE_DIR", str(ROOT / ".cache" / "lanikai"))
    os.chdir(ROOT)
    from .campaign import Campaign
    from .child import ChildFailed
    from .runs import BaselineFailed

    campaign = Campaign(
        seed=given.seed, count=given.count, cache=CACHE, result=given.json, budget_s=given.budget
    )
    if given.test:
        try:
            return 1 if campaign.again(given.files or rtl_files(), given.test) else 0
        except (BaselineFailed, ChildFailed) as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
    ended = time.monotonic() + 60 * given.minutes if given.minutes else None
    survived = 0
    for file in given.files or rtl_files():
        if ended is not None and time.monotonic() > ended:
            print(f"{file} and those after it: not begun, {given.minutes:g} minutes are over")
            break
        if own_tests(file):
            survived += campaign.file(file)
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
