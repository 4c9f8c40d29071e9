"""Ctrl-C while ``qpignn fit`` trains: real signals to real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from qpignn.training.weights import FlatWeights

Run = Callable[..., Any]
EPOCHS = 40
OPTIONS = (
    *("fit", "--dataset", "basic", "--set", "members=5", "--set", "hidden=8"),
    *("--set", "patience=null", "--epochs", EPOCHS, "--set", "neighbours=off"),
)
WARNING = "warning: training was interrupted after {} of at most {} epochs, so these intervals"
# as python -m qpignn, but every step is announced, and slow enough for a signal to find it
PROGRAM = """
import sys, time
from qpignn.cli import main
from qpignn.training.weights import FlatWeights
plain = FlatWeights.step
def slow(weights):
    plain(weights)
    print("step", file=sys.stderr, flush=True)
    time.sleep(0.05)
FlatWeights.step = slow
main()
"""


def interrupted_fit(out: Path, *options: object, steps: int = 12) -> tuple[int, str, str]:
    """Run a fit in its own process and send it SIGINT after some steps."""
    arguments = [sys.executable, "-c", PROGRAM, *map(str, (*OPTIONS, "--out", out, *options))]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # inherited by the process
    process = subprocess.Popen(
        arguments,
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # as the tests themselves
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    signal.signal(signal.SIGINT, before)
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        seen = 0
        for line in process.stderr:
            seen += line.startswith("step")
            if seen == steps:
                break
        process.send_signal(signal.SIGINT)
        rest, out_text = process.stderr.read(), process.stdout.read()
        return process.wait(), out_text, rest


def bounds(qpignn: Run, folder: Path) -> str:
    done = qpignn("predict", folder, "--only", "all", "--out", folder / "out.csv")
    assert done.code == 0, done.err
    return (folder / "out.csv").read_text()


@pytest.fixture(scope="module")
def partial(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str, str]:
    """Return the folder of an interrupted fit, its exit code and what it wrote."""
    folder = tmp_path_factory.mktemp("interrupted") / "model"
    return folder, *interrupted_fit(folder, "--json")


@pytest.fixture
def epochs(partial: tuple[Path, int, str, str]) -> int:
    """Return how many epochs the interrupted fit had done."""
    done = int(json.loads(partial[2])["epochs"])
    assert 0 < done < EPOCHS
    return done


def test_fit_sigint_while_training_exits_130_and_keeps_a_marked_model(
    partial: tuple[Path, int, str, str], epochs: int
) -> None:
    folder, code, out, err = partial
    assert code == 130
    assert "Traceback" not in err
    assert WARNING.format(epochs, EPOCHS) in err
    last = err.splitlines()[-1]
    assert last == (
        f"interrupted: the partly trained model is in {folder}; the same command with --resume "
        f"finishes it"
    )
    assert json.loads(out)["stopped"] == "interrupted"
    assert json.loads((folder / "model.json").read_text())["interrupted"] is True
    assert (folder / "checkpoint" / "training-1.safetensors").is_file()


@pytest.mark.parametrize(
    "command",
    [
        ("predict", "--out", "intervals.csv"),
        ("predict", "--out", "intervals.csv", "--only", "all", "--all-levels"),
        ("evaluate",),
        ("evaluate", "--json"),
        ("report", "--out", "page.html"),
    ],
    ids=" ".join,
)
def test_commands_on_an_interrupted_model_warn_once_on_stderr(
    command: tuple[str, ...],
    partial: tuple[Path, int, str, str],
    epochs: int,
    qpignn: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    warnings.simplefilter("ignore")  # as with PYTHONWARNINGS=ignore; pytest restores the filters
    done = qpignn(command[0], partial[0], *command[1:])
    assert done.code == 0, done.err
    assert done.err.count(WARNING.format(epochs, EPOCHS)) == 1
    assert "fit again, or finish the training with 'qpignn fit --resume'" in done.err


def test_report_of_an_interrupted_model_has_a_banner_and_a_finding(
    partial: tuple[Path, int, str, str], epochs: int, qpignn: Run, tmp_path: Path
) -> None:
    done = qpignn("report", partial[0], "--out", tmp_path / "page.html", "--json")
    findings = [one for one in json.loads(done.out)["findings"] if one["kind"] == "training"]
    assert [one["severity"] for one in findings] == ["warning"]
    assert f"after {epochs} of at most {EPOCHS} epochs" in findings[0]["text"]
    page = (tmp_path / "page.html").read_text()
    header = page[page.index("<h1>") : page.index("<main")]
    assert f"raining was interrupted after {epochs} of at most {EPOCHS} epochs" in header
    assert "Training was interrupted before its end." in page


def test_fit_resume_after_sigint_gives_the_bits_of_an_uninterrupted_fit(
    partial: tuple[Path, int, str, str], qpignn: Run, tmp_path: Path
) -> None:
    folder, alone = partial[0], tmp_path / "alone"
    assert qpignn(*OPTIONS, "--out", alone).code == 0
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in folder.rglob("*"):
        if path.is_file():
            place = copy / path.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())
    assert bounds(qpignn, copy) != bounds(qpignn, alone)
    done = qpignn(*OPTIONS, "--out", copy, "--resume")
    assert done.code == 0, done.err
    (line,) = [line for line in done.err.splitlines() if line.startswith("resuming at epoch ")]
    assert int(line.split()[3]) > 0  # the work done before the signal is not lost
    assert "interrupted" not in done.err
    assert not (copy / "checkpoint").exists()
    assert (copy / "model.safetensors").read_bytes() == (alone / "model.safetensors").read_bytes()
    assert bounds(qpignn, copy) == bounds(qpignn, alone)
    assert json.loads((copy / "model.json").read_text())["interrupted"] is False
    done = qpignn("evaluate", copy)
    assert "interrupted" not in done.out + done.err


def test_fit_sigint_in_the_second_training_keeps_the_first_and_resumes(
    qpignn: Run, tmp_path: Path
) -> None:
    heavy = ("--set", "target_transform=auto")
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    rows = [f"{i},{(i * 37) % 101},{2.0 ** ((i * 53) % 14)}" for i in range(260)]
    nodes.write_text("\n".join(["id,size,cost", *rows]))
    edges.write_text("\n".join(["source,target", *(f"{i},{(i + 1) % 260}" for i in range(260))]))
    source = ("--nodes", nodes, "--edges", edges, "--target", "cost", *heavy)
    plain = tuple(str(word) for word in OPTIONS if word not in ("--dataset", "basic"))
    arguments = [sys.executable, "-c", PROGRAM, *plain, *map(str, source), "--out"]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [*arguments, str(tmp_path / "model")],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    signal.signal(signal.SIGINT, before)
    with process:
        assert process.stderr is not None
        steps = (line for line in process.stderr if line.startswith("step"))
        for _ in range(EPOCHS + 10):
            next(steps)
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
        assert process.wait() == 130
    (warning,) = [line for line in err.splitlines() if line.startswith("warning: training was")]
    number = int(warning.split()[5])
    assert warning.startswith(WARNING.format(number, 2 * EPOCHS))
    assert EPOCHS + 9 <= number < 2 * EPOCHS
    resumed = qpignn(*plain, *source, "--out", tmp_path / "model", "--resume")
    assert "of training 2" in resumed.err
    assert qpignn(*plain, *source, "--out", tmp_path / "alone").code == 0
    assert bounds(qpignn, tmp_path / "model") == bounds(qpignn, tmp_path / "alone")


@pytest.fixture
def signals() -> Iterator[Callable[[int], None]]:
    """Return a function that sends this process SIGINT in the middle of a step, once."""
    plain, wanted, done = FlatWeights.step, 0, 0
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def step(weights: FlatWeights) -> None:
        nonlocal done
        plain(weights)
        done += 1
        if done == wanted:
            weights.vector[::2] += 1.0  # the step is not finished: a torn state
            signal.raise_signal(signal.SIGINT)

    def at(number: int) -> None:
        nonlocal wanted
        wanted = number

    FlatWeights.step = step  # type: ignore[method-assign]
    yield at
    FlatWeights.step = plain  # type: ignore[method-assign]
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("step", [2, 12])
def test_fit_resume_after_sigint_within_a_step_starts_from_a_whole_epoch(
    step: int, signals: Callable[[int], None], qpignn: Run, tmp_path: Path
) -> None:
    torn, alone = tmp_path / "torn", tmp_path / "alone"
    assert qpignn(*OPTIONS, "--out", alone).code == 0
    signals(EPOCHS + step)
    assert qpignn(*OPTIONS, "--out", torn).code == 130
    assert qpignn(*OPTIONS, "--out", torn, "--resume").code == 0
    assert bounds(qpignn, torn) == bounds(qpignn, alone)


def test_fit_sigint_within_the_first_epoch_exits_130_without_a_model(
    signals: Callable[[int], None], qpignn: Run, tmp_path: Path
) -> None:
    signals(1)
    done = qpignn(*OPTIONS, "--out", tmp_path / "model")
    assert done.code == 130
    last = done.err.splitlines()[-1]
    assert last == "interrupted: the same command with --resume continues the fit"
    assert not (tmp_path / "model" / "model.json").exists()
    done = qpignn(*OPTIONS, "--out", tmp_path / "model", "--resume")
    assert done.code == 0
    assert "resuming at epoch 0 of training 1" in done.err


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_fit_sigint_within_a_destructor_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, qpignn: Run, tmp_path: Path
) -> None:
    class Destroyed:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)  # Python discards the KeyboardInterrupt

    plain, done = FlatWeights.step, 0

    def step(weights: FlatWeights) -> None:
        nonlocal done
        plain(weights)
        done += 1
        if done == 5:
            Destroyed()

    monkeypatch.setattr(FlatWeights, "step", step)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    ended = qpignn(*OPTIONS, "--out", tmp_path / "model", "--json")
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler
    assert (ended.code, json.loads(ended.out)["epochs"]) == (130, 5)


def test_fit_sigint_does_not_replace_a_finished_model(
    signals: Callable[[int], None], qpignn: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    assert qpignn(*OPTIONS, "--out", folder).code == 0
    before = bounds(qpignn, folder)
    signals(EPOCHS + 12)
    ended = qpignn(*OPTIONS, "--seed", 1, "--out", folder, "--json")
    assert (ended.code, json.loads(ended.out)["saved"]) == (130, False)
    assert ended.err.splitlines()[-1] == (
        f"interrupted: the earlier model in {folder} is unchanged; the same command with --resume "
        f"finishes the new one"
    )
    assert bounds(qpignn, folder) == before
    assert qpignn(*OPTIONS, "--seed", 1, "--out", folder, "--resume").code == 0
    assert bounds(qpignn, folder) != before


def test_command_interrupted_within_exec_exits_130_not_by_the_signal(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("""
import sys
import qpignn.cli.datasets
from qpignn.cli import main
def interrupted(*_, **__):
    exec("raise KeyboardInterrupt")  # as in an import that makes a dataclass
qpignn.cli.datasets.print_table = interrupted
sys.argv = ["qpignn", "datasets"]
main()
""")
    arguments = [sys.executable, "-m", "program"]
    done = subprocess.run(arguments, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_demo_sigint_while_training_exits_130_without_a_report(
    signals: Callable[[int], None], qpignn: Run, tmp_path: Path
) -> None:
    signals(5)
    done = qpignn("demo", "--out", tmp_path / "demo")
    assert (done.code, done.err.splitlines()[-1]) == (130, "interrupted")
    assert not (tmp_path / "demo" / "report.html").exists()
