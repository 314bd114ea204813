"""The command `oxshmem`, which the package carries: ``python -m oxshmem run -n 4 python program.py``."""

from __future__ import annotations

import os
import sys


def _command() -> str:
    carried = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin", "oxshmem")
    return os.environ.get("OXSHMEM_COMMAND") or carried


def main() -> None:
    """Runs the command in the place of this process."""
    command = _command()
    # Programs that are called `python` are this interpreter, with its packages.
    folder = os.path.dirname(os.path.abspath(sys.executable))
    path = os.environ.get("PATH", os.defpath)
    if folder not in path.split(os.pathsep):
        os.environ["PATH"] = folder + os.pathsep + path
    try:
        os.execv(command, ["oxshmem", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"oxshmem: {command}: {error.strerror}; this package has no command: name one in OXSHMEM_COMMAND, or install the wheel of ci/python-wheel")


if __name__ == "__main__":
    main()
