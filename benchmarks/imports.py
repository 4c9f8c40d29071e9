"""How long importing takes, as ratios to ``import torch``; medians over runs, interleaved.

python benchmarks/imports.py --runs 5
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

CODES = {
    "import torch": "import torch",
    "torch and sklearn.base": "import torch, sklearn.base",
    "from qpignn import QpiGNN": "from qpignn import QpiGNN",
    "from qpignn import QpiGNN, from_frames": "from qpignn import QpiGNN, from_frames",
    "a wrong option refused": (
        "import sys; sys.argv = ['qpignn', 'fit', '--dataset', 'er', '--confidence', '90', "
        "'--out', 'm']\nfrom qpignn.cli import main\ntry:\n    main()\nexcept SystemExit: pass"
    ),
}


def seconds(code: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    results: dict[str, list[float]] = {name: [] for name in CODES}
    for code in CODES.values():
        seconds(code)  # compiled files and the disk's cache are warm
    for _ in range(runs):
        for name, code in CODES.items():
            results[name].append(seconds(code))
    base = statistics.median(results["import torch"])
    print(f"medians over {runs} runs; seconds, and times `import torch`")
    for name, times in results.items():
        middle = statistics.median(times)
        print(f"{name:42} {middle:6.2f} s   {middle / base:5.2f}")


if __name__ == "__main__":
    main()
