#!/usr/bin/env python3
"""Python packages that have compilers or libraries of CUDA, from the cache or from PyPI.

    ci/pypi_packages.py NAME REQUIREMENT...    prints the folder site-packages, after it has fetched them once

They are kept, without their dependencies, in $XDG_CACHE_HOME/oxshmem/NAME. Name what changes with the requirements.
"""

import fcntl
import glob
import os
import subprocess
import sys
import venv


class Failure(Exception):
    """What went wrong, for the user."""


def fetch(name, requirements):
    """The folder site-packages that has the packages."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    place = os.path.join(cache, "oxshmem", name)
    os.makedirs(place, exist_ok=True)
    done = os.path.join(place, "complete")
    environment = os.path.join(place, "venv")
    with open(os.path.join(place, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one fetches, the others wait for it
        if not os.path.exists(done):
            try:
                venv.create(environment, with_pip=True, clear=True)
            except (subprocess.CalledProcessError, OSError) as error:
                raise Failure(f"python3 cannot make {environment}: {error}; on Debian install python3-venv") from error
            pip = [os.path.join(environment, "bin", "pip"), "install", "--quiet", "--no-deps",
                   "--disable-pip-version-check", "--retries", "1", *requirements]
            if subprocess.run(pip, check=False).returncode != 0:
                raise Failure(f"{', '.join(requirements)} could not be had (pip's message is above); needed once, with a "
                              f"network, and kept in {place}")
            with open(done, "w", encoding="ascii"):
                pass
    found = glob.glob(os.path.join(environment, "lib", "python3*", "site-packages"))
    if not found:
        raise Failure(f"no packages in {environment}; remove {place} and try again")
    return found[0]


def main():
    """Prints the folder."""
    if len(sys.argv) < 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        print(fetch(sys.argv[1], sys.argv[2:]))
    except Failure as failure:
        print(f"ci/pypi_packages.py: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
