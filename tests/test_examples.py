"""The example scripts and the notebook run and give their documented output."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from matplotlib.image import imread
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent / "examples"
NEEDS = {"roads": "anaheim"}


@pytest.mark.parametrize("name", ["roads", "stations"])
def test_script_runs_and_draws_a_picture(
    name: str, real: Callable[..., Any], tmp_path: Path
) -> None:
    if name in NEEDS:
        real(NEEDS[name])
    picture = tmp_path / "picture.png"
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), str(picture)]
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    pixels = imread(picture)
    assert pixels.shape[1] > 1000
    assert pixels[..., :3].std() > 0.05  # something is drawn


def test_transformer_encoder_prints_figures_of_every_encoder() -> None:
    command = [sys.executable, str(EXAMPLES / "transformer_encoder.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == ["sage", "mlp", "Transformer"]
    assert all(0.5 <= float(line[2]) <= 1 and float(line[4]) > 0 for line in lines)


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], Path]:
    folder = tmp_path_factory.mktemp("notebook")
    book = nbformat.read(EXAMPLES / "start.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells)  # committed without outputs
    NotebookClient(book, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell.outputs for cell in book.cells if cell.cell_type == "code"], folder


def test_notebook_shows_tables_and_pictures(notebook: tuple[list[Any], Path]) -> None:
    outputs, folder = notebook
    shown = [output["data"] for cell in outputs for output in cell if "data" in output]
    pages = [data["text/html"] for data in shown if "text/html" in data]
    assert any("200 nodes at 0.9" in page and "<table" in page for page in pages)
    assert any("<li>" in page and "held-out nodes are covered" in page for page in pages)
    assert any("image/png" in data for data in shown)
    assert (folder / "report.html").is_file()
    assert len((folder / "intervals.csv").read_text().splitlines()) == 201


def test_progress_in_a_notebook_is_one_line_per_stage_that_is_rewritten(
    notebook: tuple[list[Any], Path],
) -> None:
    streams = [output for output in notebook[0][1] if output.output_type == "stream"]
    assert {stream.name for stream in streams} == {"stderr"}
    text = "".join(stream.text for stream in streams).strip()
    lines = text.split("\n")
    assert len(lines) <= 2  # no more lines, and no warning about missing widgets
    for line in lines:
        last = line.split("\r")[-1]
        assert last.startswith("training ")
        assert "/500" in last
