"""A record of what every method gives on a small grid, to hold a refactoring against.

    python benchmarks/record.py write [--jobs 2]   # fit, and write benchmarks/record.json
    python benchmarks/record.py check [--jobs 2]   # fit again, and compare with that file
    python benchmarks/record.py check --results results.sqlite   # use finished fits of this code

``check`` prints, for every part of the grid and every method, how many rows are bit-equal, and for
the others by how many standard errors of the paired difference over seeds coverage, width and
Winkler score moved on each data set. It fails if a mean over at least 5 seeds moved by more than
2.5 standard errors, or if a row is missing. Fewer seeds have no standard error worth the name: such
rows are only reported.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).with_name("record.json")
METRICS = ("picp", "mpiw", "winkler")
SETS = "er,tree,anaheim,education,chameleon"
METHODS = (
    "qpignn,qpignn_single,sqr,rqr,mc_dropout,bayesian,evidential,deep_ensemble,quantile,ablation,"
    "cfgnn,cqr,conformal:qpignn,ensemble:rqr"
)
PUBLISHED = "sqr,rqr,mc_dropout,bayesian,ablation,cfgnn"
FIXED = ("--lambda-width", "0.5")
PARTS: dict[str, tuple[str, ...]] = {
    "default": ("--datasets", SETS, "--methods", METHODS, "--seeds", "10"),
    "searched": ("--datasets", "er,anaheim", "--methods", "cfgnn_tuned", "--seeds", "2"),
    "lambda": ("--datasets", "er,education", "--lambda-width", "0.05", "--seeds", "3"),
    "tuned": ("--datasets", "er", "--lambda-width", "tuned", "--seeds", "2"),
    "batches": ("--datasets", "er,education", "--set", "batch_size=256", "--seeds", "3"),
    "levels": ("--datasets", "er,anaheim", "--confidence", "0.5,0.8,0.95", "--seeds", "3"),
    "one side": ("--datasets", "er,anaheim", "--set", "side=upper", "--seeds", "3"),
    "inductive": ("--datasets", "er,anaheim", "--view", "inductive", "--seeds", "3"),
    "degree split": ("--datasets", "er,anaheim", "--split", "degree", "--seeds", "3"),
    "few labels": ("--datasets", "er,anaheim", "--label-fraction", "0.1", "--seeds", "3"),
    "three layers": ("--datasets", "er", "--set", "layers=3", "--seeds", "3"),
    "published qpignn": (
        *("--datasets", "basic,er,education,anaheim", "--protocol", "published"),
        *(*FIXED, "--seeds", "3"),
    ),
    "published baselines": (
        *("--datasets", "basic,er,anaheim", "--methods", PUBLISHED),
        *("--protocol", "published", "--seeds", "2"),
    ),
}
Row = dict[str, Any]


def rows(part: str, jobs: int, results: Path) -> list[Row]:
    """Fit one part of the grid."""
    arguments = [sys.executable, "-m", "qpignn", "compare", *PARTS[part], "--json"]
    arguments += ["--jobs", str(jobs), "--results", str(results)]
    done = subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True)
    kept = ("dataset", "method", "seed", "confidence_level", *METRICS)
    return [{name: row[name] for name in kept} for row in json.loads(done.stdout)]


def key(row: Row) -> tuple[Any, ...]:
    """Return what tells a row from the others of its part."""
    return row["method"], row["dataset"], row["confidence_level"], row["seed"]


def compare(part: str, before: list[Row], now: list[Row]) -> bool:
    """Print how rows differ; return whether they agree."""
    current, agrees = {key(row): row for row in now}, True
    groups: dict[tuple[Any, ...], list[tuple[Row, Row | None]]] = defaultdict(list)
    for row in before:
        groups[key(row)[:3]].append((row, current.get(key(row))))
    for (method, dataset, level), pairs in groups.items():
        missing = sum(new is None for _, new in pairs)
        there = [(old, new) for old, new in pairs if new is not None]
        equal = sum(all(old[m] == new[m] for m in METRICS) for old, new in there)
        if equal == len(pairs):
            continue
        notes = [f"{equal} of {len(pairs)} rows bit-equal"]
        if missing:
            notes.append(f"{missing} missing")
            agrees = False
        for metric in METRICS:
            values = [(old[metric], new[metric]) for old, new in there]
            if not values or any(value is None for pair in values for value in pair):
                continue
            moved = np.array([new - old for old, new in values])
            error = moved.std(ddof=1) / math.sqrt(len(moved)) if len(moved) > 1 else math.nan
            z = moved.mean() / error if error > 0 else 0.0
            base = np.mean([old for old, _ in values])
            notes.append(f"{metric} {base:.4f} {moved.mean():+.4f} (z {z:+.1f})")
            agrees = agrees and not (len(moved) >= 5 and abs(z) > 2.5)
        print(f"{part}: {method} on {dataset} at {level}: " + ", ".join(notes))
    return agrees


def main() -> None:
    """Write the record, or compare with it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("write", "check"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--results", type=Path, help="store of finished fits; default a new one")
    asked = parser.parse_args()
    record: dict[str, list[Row]] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    agrees = True
    with tempfile.TemporaryDirectory() as folder:
        for part in asked.parts:
            now = rows(part, asked.jobs, asked.results or Path(folder) / "results.sqlite")
            if asked.action == "check":
                agrees = compare(part, record[part], now) and agrees
                print(f"{part}: {len(now)} rows compared", flush=True)
            else:
                record[part] = now
                print(f"{part}: {len(now)} rows", flush=True)
    if asked.action == "write":
        lines = (
            f"{json.dumps(part)}: [\n" + ",\n".join(json.dumps(row) for row in rows_of_part) + "\n]"
            for part, rows_of_part in record.items()
        )
        RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    raise SystemExit(not agrees)


if __name__ == "__main__":
    main()
