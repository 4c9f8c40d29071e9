"""Artificial content of the report page, and helpers that read the page."""

from __future__ import annotations

from typing import Any

import numpy as np

BORDER = 1  # of the canvas


def make_content(count: int = 60, *, drawn: int | None = None) -> dict[str, Any]:
    """Return content in which node i has the prediction i and the interval i ± (1 + i / count)."""
    rng = np.random.default_rng(0)
    prediction = np.arange(count, dtype=float)
    half = 1 + prediction / count
    target = np.round(prediction + rng.normal(0, 0.8, count), 3)
    role = np.arange(count) % 3
    lower, upper = prediction - half, prediction + half
    held = np.flatnonzero(role == 1)[:400]
    shown = min(count, 400) if drawn is None else drawn
    side = max(int(np.ceil(np.sqrt(shown))), 2)
    group = {"coverage": 0.92, "low": 0.85, "high": 0.97, "size": 3.1, "flagged": False}
    return {
        "title": "Unemployment by county",
        "subtitle": "90 % intervals",
        "made": "2026-11-16 05:12 UTC",
        "version": "0.0",
        "level": 0.9,
        "target": "unemployment",
        "side": "both",
        "summary": ["One sentence.", "Another sentence."],
        "verdict": {"severity": "good", "text": "the intervals hold"},
        "findings": [
            {"severity": "warning", "kind": "group", "text": "hubs are covered less often"},
            {"severity": "note", "kind": "isolated", "text": "two nodes stand alone"},
        ],
        "figures": {"confidence_level": 0.9, "n_test": 20, "picp": 0.912345, "nmpiw": None},
        "key_numbers": [{"label": "Coverage", "value": "91.2 %", "note": "nominal 90 %"}] * 5,
        "band": {
            "node": held.tolist(),
            "target": target[held].tolist(),
            "prediction": prediction[held].tolist(),
            "lower": lower[held].tolist(),
            "upper": upper[held].tolist(),
            "inside": (np.abs(target - prediction) <= half)[held].tolist(),
            "shown": len(held),
            "of": len(held),
        },
        "calibration": [
            {"level": level, "coverage": level + 0.01, "low": level - 0.03, "high": level + 0.04}
            for level in (0.5, 0.8, 0.9)
        ],
        "groupings": [
            {
                "name": name,
                "title": name,
                "about": f"Groups by {name}.",
                "groups": [
                    {**group, "label": "few", "nodes": 12},
                    {**group, "label": "many", "nodes": 8, "coverage": 0.61, "flagged": True},
                ],
            }
            for name in ("degree", "region")
        ],
        "misses": {"below": 3, "above": 1, "nodes": 20},
        "errors": [{"width": 2.0, "error": 0.5, "nodes": 10}, {"width": 4, "error": 1, "nodes": 9}],
        "training": {
            "loss": [3.0, 2.0, 1.5, 1.4],
            "coverage": [0.2, 0.7, 0.9, 0.91],
            "width": [1.0, 2.0, 2.2, 2.1],
            "held_out": [[0, 2.0], [2, 1.0], [3, 1.2]],
            "level": 0.9,
            "best_epoch": 2,
            "stopped": "patience",
        },
        "graph": {
            "kind": "layout",
            "note": "connected nodes are drawn close together",
            "axes": None,
            "node": list(range(shown)),
            "x": [i % side / (side - 1) for i in range(shown)],
            "y": [i // side / (side - 1) for i in range(shown)],
            "edges": [end for i in range(shown - 1) for end in (i, i + 1)],
            "aspect": 1.5,
            "shown": shown,
            "of": count,
            "edges_shown": max(shown - 1, 0),
            "edges_of": count - 1,
        },
        "nodes": {
            "id": [f"node {i}" for i in range(count)],
            "role": role.tolist(),
            "prediction": prediction.tolist(),
            "lower": lower.tolist(),
            "upper": upper.tolist(),
            "target": [None if r == 2 else t for r, t in zip(role, target.tolist(), strict=True)],
            "inside": np.where(
                role == 2, 0, np.where(np.abs(target - prediction) <= half, 1, 2)
            ).tolist(),
            "degree": [2] * count,
            "shown": count,
            "of": count,
            "note": "",
        },
        "columns": {"list": [], "left_out": []},
        "settings": [["epochs", "500"]],
        "versions": [["torch", "2.13.0"]],
        "read": [["nodes", "nodes.csv"]],
    }


def with_columns(count: int = 60) -> dict[str, Any]:
    """Return the same with columns: numbers, text, blanks, and one hidden at first."""
    content = make_content(count)
    names = ["lake", "mill 10", "mill 9", None]
    content["columns"]["list"] = [
        {"name": "lon", "shown": False, "kind": "number", "values": [i / 8 for i in range(count)]},
        {
            "name": "year",
            "shown": True,
            "kind": "number",
            "values": [2000 + i for i in range(count)],
        },
        {
            "name": "name",
            "shown": True,
            "kind": "text",
            "categories": names[:3],
            "codes": [i % 4 if i % 4 < 3 else -1 for i in range(count)],
        },
        {"name": "a", "shown": True, "kind": "number", "values": [-i / 3 for i in range(count)]},
        {"name": "b", "shown": True, "kind": "number", "values": [None] * count},
    ]
    return content


def in_table(page: Any) -> list[str]:
    return page.locator("#rows tr td:first-child").all_inner_texts()


def column(page: Any, name: str) -> list[float]:
    return [float(text) for text in page.locator(f"#rows td.{name}").all_inner_texts()]


def search_for(page: Any, query: str, expected: str) -> None:
    page.fill("#search", query)
    page.wait_for_function(
        "text => document.getElementById('count').textContent.includes(text)", arg=expected
    )


def hover(page: Any, x: float, y: float) -> None:
    """Point at a position on the canvas."""
    page.locator("#graph").hover(position={"x": x + BORDER, "y": y + BORDER})
