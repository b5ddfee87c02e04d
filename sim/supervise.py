"""A command in a process group of its own that ends when whoever asked for it does, however that ends.

This file is started as a script, the supervisor, with the read end of a pipe that only the asker holds open. The pipe
closes when the asker exits, is interrupted or is killed. The supervisor then kills the whole group. A compiler started
by `make` would otherwise go on by itself.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

__all__ = ["run_supervised"]


def run_supervised(command: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: IO[bytes]) -> int:
    """Run `command`, output to `log`. Returns its exit status. No process of it is left when this returns or raises."""
    read_end, write_end = os.pipe()
    try:
        supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(read_end), *command],
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=[read_end],
            start_new_session=True,
        )
        os.close(read_end)
        try:
            return supervisor.wait()
        except BaseException:
            os.close(write_end)
            write_end = -1
            supervisor.wait()
            raise
    finally:
        if write_end >= 0:
            os.close(write_end)


def main(arguments: Sequence[str]) -> int:
    """The supervisor: `arguments` are the pipe's descriptor and the command. Returns the command's exit status."""
    pipe, command = int(arguments[0]), arguments[1:]
    os.set_inheritable(pipe, False)
    child = subprocess.Popen(command, start_new_session=True)
    done = os.pidfd_open(child.pid)
    ready, _, _ = select.select([pipe, done], [], [])
    if done in ready:
        return child.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
