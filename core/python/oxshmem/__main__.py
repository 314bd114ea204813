"""The command `oxshmem`, which the package carries: ``python -m oxshmem run -n 4 python program.py``."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Runs the command in the place of this process."""
    command = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin", "oxshmem")
    # Programs that are called `python` are this interpreter, with its packages.
    folder = os.path.dirname(os.path.abspath(sys.executable))
    path = os.environ.get("PATH", os.defpath)
    if folder not in path.split(os.pathsep):
        os.environ["PATH"] = folder + os.pathsep + path
    try:
        os.execv(command, ["oxshmem", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"oxshmem: {command}: {error.strerror}; this package carries no command; install a wheel that ci/python-wheel has made, or start programs by another one's `oxshmem run`")


if __name__ == "__main__":
    main()
