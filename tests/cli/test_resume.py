"""``qpignn fit --resume``: a fit that was killed is resumed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qpignn.training.checkpoint import Checkpointer
from qpignn.training.weights import FlatWeights

Run = Callable[..., Any]
OPTIONS = ("--dataset", "basic", "--set", "members=5", "--set", "hidden=8", "--epochs", 40)
# as python -m qpignn, but kept every epoch, and slow enough to be killed in the middle
PROGRAM = """
import time
from qpignn.cli import main
from qpignn.training.checkpoint import Checkpointer
on_epoch_end = Checkpointer.on_epoch_end
def often(checkpointer, state):
    checkpointer.every = 0
    on_epoch_end(checkpointer, state)
    time.sleep(0.05)
Checkpointer.on_epoch_end = often
main()
"""


def fit(folder: Path, *more: object) -> tuple[object, ...]:
    return ("fit", *OPTIONS, "--out", folder, *more)


def predicted(qpignn: Run, folder: Path) -> str:
    done = qpignn("predict", folder, "--only", "all", "--out", folder / "out.csv")
    assert done.code == 0, done.err
    return (folder / "out.csv").read_text()


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    on_epoch_end = Checkpointer.on_epoch_end

    def every_epoch(checkpointer: Checkpointer, state: Any) -> None:
        checkpointer.every = 0
        on_epoch_end(checkpointer, state)

    monkeypatch.setattr(Checkpointer, "on_epoch_end", every_epoch)


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch, often: None) -> Callable[[int, BaseException], None]:
    """Raise something in the place of a step, once."""

    def at(wanted: int, error: BaseException) -> None:
        plain, done = FlatWeights.step, 0

        def step(weights: FlatWeights) -> None:
            nonlocal done
            done += 1
            if done == wanted:
                raise error
            plain(weights)

        monkeypatch.setattr(FlatWeights, "step", step)

    return at


def test_kill_9_then_resume_equals_an_uninterrupted_fit(qpignn: Run, tmp_path: Path) -> None:
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    assert qpignn(*fit(alone)).code == 0
    assert not (alone / "checkpoint").exists()
    arguments = [sys.executable, "-c", PROGRAM, *map(str, fit(killed))]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}  # as the tests themselves
    with subprocess.Popen(arguments, env=one_thread, stderr=subprocess.DEVNULL) as process:
        kept = killed / "checkpoint" / "training-1.safetensors"
        until = time.monotonic() + 60
        while not kept.exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.2)  # some more epochs
        process.kill()
        assert process.wait() == -9  # it had not ended by itself
    assert [path.name for path in killed.iterdir()] == ["checkpoint"]
    done = qpignn(*fit(killed, "--resume"))
    assert done.code == 0, done.err
    assert "resuming at epoch " in done.err
    assert not (killed / "checkpoint").exists()
    assert predicted(qpignn, killed) == predicted(qpignn, alone)


def test_fit_without_resume_starts_from_the_beginning_and_prints_it(
    qpignn: Run, tmp_path: Path, stop: Callable[[int, BaseException], None]
) -> None:
    stop(9, MemoryError("gone"))
    assert "MemoryError: gone" in qpignn(*fit(tmp_path / "m")).err
    done = qpignn(*fit(tmp_path / "m"))
    assert done.code == 0
    assert "removed the unfinished fit in" in done.err
    assert "--resume" in done.err
    assert "going on" not in done.err
    assert not (tmp_path / "m" / "checkpoint").exists()
    done = qpignn(*fit(tmp_path / "m"))
    assert "unfinished" not in done.err


def test_fit_resume_without_checkpoint_starts_from_the_beginning(
    qpignn: Run, tmp_path: Path
) -> None:
    done = qpignn(*fit(tmp_path / "m", "--resume"))
    assert done.code == 0
    folder = tmp_path / "m" / "checkpoint"
    assert f"nothing to resume in {folder}: starting from the beginning" in done.err


def test_another_fit_is_not_resumed(
    qpignn: Run, tmp_path: Path, stop: Callable[[int, BaseException], None]
) -> None:
    stop(9, MemoryError("gone"))
    assert "MemoryError: gone" in qpignn(*fit(tmp_path / "m")).err
    done = qpignn(*fit(tmp_path / "m", "--resume", "--seed", 1))
    assert done.code == 2
    assert "expected a checkpoint of this very fit" in done.err
    assert "without --resume" in done.err
    done = qpignn(*fit(tmp_path / "m", "--resume"))
    assert done.code == 0
    assert "resuming at epoch 8 of training 1" in done.err


def test_fit_with_invalid_settings_keeps_the_checkpoint(
    qpignn: Run, tmp_path: Path, stop: Callable[[int, BaseException], None]
) -> None:
    stop(9, MemoryError("gone"))
    assert "MemoryError: gone" in qpignn(*fit(tmp_path / "m")).err
    assert qpignn(*fit(tmp_path / "m", "--set", "layers=0")).code == 2
    assert "resuming at epoch 8" in qpignn(*fit(tmp_path / "m", "--resume")).err


def test_fit_second_ctrl_c_while_saving_keeps_the_checkpoint(
    qpignn: Run,
    tmp_path: Path,
    stop: Callable[[int, BaseException], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone, twice = tmp_path / "alone", tmp_path / "twice"
    assert qpignn(*fit(alone)).code == 0
    stop(9, KeyboardInterrupt())
    with monkeypatch.context() as during:
        during.setattr("qpignn.methods.bundle.save_fit", interrupted)
        assert qpignn(*fit(twice)).code != 0
    done = qpignn(*fit(twice, "--resume"))
    assert "resuming at epoch 8 of training 1" in done.err
    assert predicted(qpignn, twice) == predicted(qpignn, alone)


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt
