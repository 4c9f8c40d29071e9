"""The command line's entry point: ``qpignn`` and ``python -m qpignn``.

The address space is checked before anything large is imported: under a small limit, libraries end
in errors of many kinds, or abort the process.
"""

from __future__ import annotations

import sys

LEAST_ADDRESS_SPACE = 3 << 30
"""Bytes that torch, pandas and the libraries they load map when they are imported."""


def main() -> None:
    """Run the command line, or end with exit code 2 where the address space is too small."""
    limit = _address_space()
    if limit is not None and limit < LEAST_ADDRESS_SPACE:
        sys.exit(_refuse(limit))
    from qpignn.cli import main as run

    run()


def _address_space() -> int | None:
    """Return the limit on this process's address space in bytes, or ``None`` without one."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else int(limit)


def _refuse(limit: int) -> int:
    sys.stderr.write(
        f"error: expected an address space of at least {LEAST_ADDRESS_SPACE >> 10:,} kB, got a "
        f"limit of {limit >> 10:,} kB; raise it (ulimit -v)\n"
    )
    return 2


if __name__ == "__main__":
    main()
