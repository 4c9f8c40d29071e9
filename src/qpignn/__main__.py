"""``python -m qpignn``: the command line."""

from qpignn.cli import main

if __name__ == "__main__":
    main()
