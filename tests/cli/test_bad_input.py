"""The list of mistakes on the command line, and how every command ends.

One line per case: its name, the command, and what the one line of the error says. Bad tables, graphs
and settings are the same as in Python: ``tests/test_bad_input.py`` lists them.
"""

# ruff: noqa: E501 (a case is a line)

from __future__ import annotations

import errno
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from qpignn.cli.errors import describe_error
from qpignn.errors import RankError
from qpignn.experiments.store import Store

Run = Callable[..., Any]
FIT = (
    *("fit", "--nodes", "nodes.csv", "--edges", "edges.csv"),
    *("--target", "rain", "--epochs", "3", "--out", "model"),
)
SMALL = ("--set", "members=5", "--set", "hidden=4")


class Case(NamedTuple):
    name: str
    command: str
    message: str


FILES = "--nodes nodes.csv --edges edges.csv --target rain"
CASES = [
    Case("a setting nested without end", f"fit {FILES} --out m --set hidden={'[' * 100_000}{']' * 100_000}", "expected a value of hidden nested at most 20 levels deep, got more"),
    Case("a setting nested deep", f"fit {FILES} --out m --set hidden={'[' * 21}{']' * 21}", "expected a value of hidden nested at most 20 levels deep, got more"),
    Case("no input", "fit --out m", "expected either --dataset NAME or --nodes FILE or --graph DIR, got several or none"),
    Case("two inputs", "fit --dataset basic --nodes nodes.csv --out m", "got several or none"),
    Case("no target", "fit --nodes nodes.csv --out m", "expected --target COLUMN: the column"),
    Case("a file that is not there", "fit --nodes node.csv --target rain --out m", r"node.csv: expected a file, got nothing; did you mean nodes.csv\?"),
    Case("a folder in place of a file", "fit --nodes . --target rain --out m", "expected a file, got a folder"),
    Case("a file in place of a folder", f"fit {FILES} --out nodes.csv", "nodes.csv: expected a folder, got the other"),
    Case("a folder below a file", f"fit {FILES} --out nodes.csv/m", "cannot be written: .*nodes.csv is a file, not a folder"),
    Case("an old spreadsheet", "fit --nodes nodes.xls --target rain --out m", "nodes.xls: expected a table .*got .xls; save the sheet as .xlsx or CSV"),
    Case("another encoding", "fit --nodes latin.csv --target rain --out m", "latin.csv: expected text in utf-8, got bytes that are not"),
    Case("an unknown encoding", f"fit {FILES} --encoding klingon --out m", "unknown encoding: klingon"),
    Case("a misspelt target", "fit --nodes nodes.csv --target rian --out m", r"lacks the column 'rian'; .*did you mean rain\?"),
    Case("a misspelt id column", f"fit {FILES} --id station --out m", "expected an id column 'station', got .*--id on the command line"),
    Case("one end of edges", f"fit {FILES} --edge-ends from --out m", "edge_ends: expected two columns, got 'from'"),
    Case("weights without edges", "fit --nodes nodes.csv --target rain --edge-weight km --out m", "--edge-weight and --edge-ends need --edges"),
    Case("roles for a data set", "fit --dataset basic --target y --out m", "expected no column options with --dataset, got 'target'; use them with --nodes"),
    Case("an unknown data set", "fit --dataset chamelion --out m", "unknown data set 'chamelion': did you mean chameleon"),
    Case("an unknown method", f"fit {FILES} --method qpign --out m", "unknown method 'qpign': did you mean qpignn"),
    Case("per cent", f"fit {FILES} --confidence 90 --out m", "--confidence: expected a number strictly between 0 and 1, such as 0.9, got 90.0; for 90 % write 0.9"),
    Case("per cent when comparing", "compare --datasets basic --confidence 95", "--confidence: expected .*got 95.0; for 95 % write 0.95"),
    Case("per cent when judging", "evaluate fitted --confidence 90", "confidence_level: expected .*got 90.0; for 90 % write 0.9"),
    Case("a level as text", f"fit {FILES} --confidence high --out m", "--confidence: expected a number .*got 'high'"),
    Case("no level", f"fit {FILES} --confidence , --out m", "--confidence: expected a number or a list of numbers"),
    Case("a level that was not fitted", "predict fitted --confidence 0.95 --out i.csv", "expected one of the fitted levels .*got 0.95; fit again with it"),
    Case("no epochs", f"fit {FILES} --epochs 0 --out m", "epochs: expected a whole number from 1 up, got 0"),
    Case("a negative seed", f"fit {FILES} --seed -1 --out m", "seed: expected a whole number from 0 up, got -1"),
    Case("a setting without a value", f"fit {FILES} --set side --out m", "--set: expected name=value, such as side=lower, got 'side'"),
    Case("a misspelt setting", f"fit {FILES} --set sides=upper --out m", "method 'qpignn' has no setting 'sides'; it has .*did you mean side"),
    Case("a setting as an option", f"fit {FILES} --encoder gcn --out m", "No such option: --encoder .*; settings of the method are given as --set encoder=gcn; see"),
    Case("a setting of another method as an option", f"fit {FILES} --method=mc_dropout --out m --passes=5", "No such option: --passes .*; settings of the method are given as --set passes=5; see"),
    Case("a setting as an option when comparing", "compare --datasets basic --methods sqr,rqr --weight-decay", "No such option: --weight-decay.*; settings of the method are given as --set weight_decay=VALUE; see"),
    Case("an option that is no setting", f"fit {FILES} --passes 5 --out m", r"No such option: --passes \(Possible options: [^;]*; see"),
    Case("an option without its value", f"fit {FILES} --out", "Option '--out' requires an argument"),
    Case("a setting as text", f"fit {FILES} --set hidden=many --out m", "hidden: expected a whole number from 1 up, got 'many'"),
    Case("a truth as Python writes it", f"fit {FILES} --method mc_dropout --set include_noise=False --out m", "include_noise: expected true or false, got 'False'"),
    Case("a setting with its own option", f"fit {FILES} --set epochs=3 --out m", "--set: epochs has its own option, --epochs"),
    Case("an unknown device", f"fit {FILES} --set device=gpu --out m", "device: expected auto, cpu or cuda, got 'gpu'"),
    Case("a limit that targets break", f"fit {FILES} --set y_min=99 --out m", "y_min, y_max: expected the given targets between 99 and inf"),
    Case("a share above 1", f"fit {FILES} --test-fraction 20 --out m", "--test-fraction: expected a share from 0 to below 1, got 20"),
    Case("a split and a share", f"fit {FILES} --split kind --test-fraction 0.2 --out m", "--test-fraction and --split exclude each other"),
    Case("blank features", "fit --nodes blank.csv --target rain --out m", "expected a number for every node, got a blank .*--missing impute"),
    Case("an unknown way to treat blanks", f"fit {FILES} --missing mean --out m", "unknown way to treat missing values 'mean'"),
    Case("no graph", "fit --graph nowhere --out m", "expected a folder written by 'qpignn convert' .*got nothing; convert again"),
    Case("a model that is none", "evaluate edges.csv", "expected a saved model with model.json"),
    Case("no model", "predict nowhere --out i.csv", "nowhere: expected a saved model with model.json, got no such folder"),
    Case("an ending that is none", "predict fitted --out i.txt", "--out: expected a file ending in .csv, .parquet, .xlsx, got i.txt"),
    Case("predictions over a folder", "predict fitted --out folder.csv", "folder.csv: expected a file, got the other"),
    Case("an unknown part of the nodes", "predict fitted --only some --out i.csv", "--only: expected unlabelled or all, got 'some'"),
    Case("edges without nodes", "predict fitted --edges edges.csv --out i.csv", "--edges needs --nodes"),
    Case("nodes the fit knows", "predict fitted --nodes nodes.csv --join --out i.csv", "expected ids of new nodes, got ids that the graph already has: 's00'"),
    Case("a column of the fit is missing", "predict fitted --nodes short.csv --out i.csv", "lacks the column 'height' of the fit; give every column"),
    Case("a report with another ending", "report fitted --out r.pdf", "--out: expected a file ending in .html, got r.pdf"),
    Case("a report by the target", "report fitted --by rain", "--by: expected columns other than the target, got 'rain'"),
    Case("a report by nothing there", "report fitted --by zone", "--by: expected columns of the node table, got 'zone'; it has 'id'"),
    Case("memory of nothing", f"convert {FILES} --memory 0 --out g", "--memory: expected a whole number from 1 up, got 0"),
    Case("a conversion of GraphML", "convert --nodes g.graphml --target t --out g", "expected tables .*got GraphML, which cannot be read in pieces"),
    Case("no data set to compare on", "compare --datasets ,", "data sets: expected at least one, got none"),
    Case("no method to compare", "compare --datasets basic --methods ,", "methods: expected at least one, got none"),
    Case("no seeds", "compare --datasets basic --seeds 0", "seeds: expected a whole number from 1 up, got 0"),
    Case("no processes", "compare --datasets basic --jobs 0", "jobs: expected a whole number from 1 up, got 0"),
    Case("an unknown engine", "compare --datasets basic --engine rays", "unknown engine 'rays': did you mean ray"),
    Case("results that are text", "compare --datasets basic --results nodes.csv", r"nodes.csv: expected a results file of qpignn \(SQLite\)"),
    Case("figures that are not there", "compare --datasets basic --against absent.csv", "absent.csv: expected a CSV of published figures"),
    Case("a picture of another kind", "curve --out c.bmp", "--out: expected a file ending in .png or .svg, got c.bmp"),
    Case("an unknown table", "paper show mian", "unknown table or figure 'mian': did you mean main"),
    Case("a table of one's own that breaks", "paper run broken.py", "broken.py: expected a Python file with a SPEC, got an error"),
    Case("a demo over a file", "demo --out nodes.csv", "nodes.csv: expected a folder, got the other"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of sixty stations, good and bad, and a model fitted on the good ones."""
    there = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    names = [f"s{i:02d}" for i in range(60)]
    table = pd.DataFrame({"id": names, "height": rng.uniform(size=60), "kind": ["a", "b"] * 30})
    table["rain"] = np.where(np.arange(60) % 6 == 0, np.nan, table["height"] + rng.uniform(size=60))
    table.to_csv(there / "nodes.csv", index=False)
    pd.DataFrame({"from": names, "to": names[1:] + names[:1]}).to_csv(
        there / "edges.csv", index=False
    )
    table.drop(columns="height").to_csv(there / "short.csv", index=False)
    table.assign(height=table["height"].where(table.index > 0)).to_csv(
        there / "blank.csv", index=False
    )
    (there / "latin.csv").write_text("id,Höhe,rain\nA,1,2\n", encoding="latin-1")
    for name in ("nodes.xls", "g.graphml"):
        (there / name).write_text("")
    (there / "broken.py").write_text("SPEC = 1 / 0")
    (there / "folder.csv").mkdir()
    arguments = [sys.executable, "-m", "qpignn", *FIT[:-1], "fitted", *SMALL]
    subprocess.run(arguments, cwd=there, check=True, capture_output=True)
    return there


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder that holds them all, to be in."""
    for path in folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QPIGNN_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_command_with_invalid_input_exits_2_with_one_error_line(
    case: Case, qpignn: Run, here: Path
) -> None:
    before = {path.name for path in here.iterdir()}
    done = qpignn(*case.command.split())
    assert done.code == 2, done.err
    *earlier, last = done.err.splitlines()
    assert last.startswith("error: "), done.err
    assert re.search(case.message, last), last
    assert not any("Traceback" in line for line in earlier)
    assert done.out == ""
    assert {path.name for path in here.iterdir()} - {"cache"} == before  # nothing half done


@pytest.mark.parametrize(
    "command", ["fit --jsn", "fit --epochs many --out m", "report", "fly", "--debg"]
)
def test_unknown_option_or_value_exits_2_without_a_traceback(command: str, qpignn: Run) -> None:
    done = qpignn(*command.split())
    assert (done.code, "Traceback" in done.err) == (2, False)


# --- how a command ends ---


def broken(*_: object, **__: object) -> None:
    raise KeyError("colour")


def test_unexpected_exception_exits_1_with_one_line(
    qpignn: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qpignn.cli.datasets._row", broken)
    done = qpignn("datasets")
    assert done.code == 1
    assert done.err == (
        "error: this is a bug in qpignn: KeyError: 'colour'; run again with --debug and report it\n"
    )


@pytest.mark.parametrize(
    "command", ["--debug datasets", "datasets --debug", "datasets --json --debug"]
)
def test_debug_shows_the_traceback_of_a_bug(
    command: str, qpignn: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qpignn.cli.datasets._row", broken)
    done = qpignn(*command.split())
    assert done.code == 1
    assert "Traceback (most recent call last)" in done.err
    assert "in broken" in done.err
    assert "this is a bug in qpignn" in done.err.splitlines()[-1]
    assert "Traceback" not in qpignn("datasets").err  # it does not stay


def test_debug_of_invalid_input_keeps_exit_code_2(
    qpignn: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = qpignn("evaluate", "nowhere", "--debug")
    assert (done.code, "Traceback" in done.err) == (2, True)
    assert "ModelFileError" in done.err
    monkeypatch.setenv("QPIGNN_DEBUG", "1")
    assert "Traceback" in qpignn("evaluate", "nowhere").err


def test_debug_is_in_the_help(qpignn: Run) -> None:
    assert "--debug" in qpignn("--help").out


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("Unable to allocate 7.45 GiB for an array"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
    ],
)
def test_memory_error_exits_2_with_advice(
    qpignn: Run, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def full(*_: object) -> None:
        raise error

    monkeypatch.setattr("qpignn.cli.datasets._row", full)
    done = qpignn("datasets")
    assert done.code == 2
    assert "error: expected enough memory, got none left" in done.err
    assert "batch_size" in done.err


def test_rank_error_exits_1(qpignn: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> None:
        raise RankError("rank 1 of 2: another one has ended")

    monkeypatch.setattr("qpignn.cli.datasets._row", lost)
    assert qpignn("datasets").code == 1


def test_fit_invalid_environment_of_torchrun_is_refused(
    qpignn: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "two")
    done = qpignn(*FIT)
    assert done.code == 2
    assert "WORLD_SIZE: expected a whole number in the environment" in done.err
    assert "unset it" in done.err
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    done = qpignn(*FIT)
    assert done.code == 1
    assert "expected to meet the other ranks" in done.err


@pytest.mark.parametrize("arguments", [("datasets",), ("datasets", "--json"), ("paper", "list")])
def test_closed_pipe_exits_141_without_output(arguments: tuple[str, ...]) -> None:
    ours = [sys.executable, "-m", "qpignn", *arguments]
    with subprocess.Popen(ours, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # before a word was said
        assert process.stderr.read() == b""
        assert process.wait() == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_of_standard_output_exits_2_with_one_line() -> None:
    arguments = [sys.executable, "-m", "qpignn", "paper", "list"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            arguments, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "error: expected enough disk space for the output, got OSError: [Errno 28]"
    )


# --- Ctrl-C ---


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def lines(text: str) -> list[str]:
    return [
        line for line in text.splitlines() if line.startswith(("interrupted", "error", "Trace"))
    ]


@pytest.mark.parametrize(
    ("stage", "place"),
    [
        ("reading", "pandas.read_csv"),
        ("looking at what was read", "qpignn.data.structure.summarize_graph"),
        ("within the first epoch", "qpignn.encoders.inputs.GraphInputs.to"),
        ("saving the weights", "qpignn.methods.serialization.atomic_files"),
        ("saving the graph", "qpignn.data.storage.write_atomically"),
        ("saving where it came from", "qpignn.methods.bundle._digests"),
    ],
)
def test_ctrl_c_in_fit_exits_130_with_one_line(
    stage: str, place: str, qpignn: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as during:
        during.setattr(place, interrupt)
        done = qpignn(*FIT, *SMALL)
    assert done.code == 130, done.err
    messages = lines(done.err)
    assert len(messages) == 1, done.err
    saving = stage.startswith("saving")
    kept = saving or stage == "within the first epoch"
    goes_on = ": the same command with --resume continues the fit" if kept else ""
    assert messages == [f"interrupted{goes_on}"]
    assert not list(here.rglob(".*.safetensors.*"))  # no rubbish
    done = qpignn("evaluate", "model")
    assert done.code == 2  # half a fit is no fit
    done = qpignn(*FIT, *SMALL, "--resume")
    assert done.code == 0, done.err
    assert ("all training was done already" in done.err) == saving


def test_ctrl_c_in_compare_reports_stored_rows(
    qpignn: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qpignn.experiments.cell.Cell.run", interrupt)
    done = qpignn("compare", "--datasets", "basic", "--seeds", 1, "--results", "r.sqlite")
    assert done.code == 130
    assert lines(done.err) == ["interrupted: 0 of 1 rows are in r.sqlite; call again to go on"]


def test_ctrl_c_in_predict_keeps_the_older_file(
    qpignn: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "i.csv").write_text("old")
    monkeypatch.setattr(os, "replace", interrupt)
    done = qpignn("predict", "fitted", "--out", "i.csv")
    assert (done.code, lines(done.err)) == (130, ["interrupted"])
    assert (here / "i.csv").read_text() == "old"
    assert not list(here.glob(".i.csv*"))


def test_sigint_of_a_process_exits_130(here: Path) -> None:
    arguments = [
        sys.executable,
        "-m",
        "qpignn",
        *FIT,
        "--set",
        "patience=100000",
        "--epochs",
        "1000000",
    ]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs of a shell ignore it
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, cwd=here)
    signal.signal(signal.SIGINT, before)
    with process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("split: "):
                break
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        output = process.stderr.read()
        code = process.wait()
    assert "Traceback" not in output
    assert code == 130  # with a partly trained model, or before there was one
    assert len(lines(output)) == 1, output


# --- what cannot be written ---


@contextmanager
def small_files(most: int) -> Iterator[None]:
    """Let no file grow larger, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


FULL = [
    ("fit", (*FIT, "--set", "hidden=64"), "model"),
    ("predict", ("predict", "fitted", "--only", "all", "--out", "i.csv"), "i.csv"),
    ("report", ("report", "fitted", "--out", "r.html"), "r.html"),
    ("convert", ("convert", "--nodes", "nodes.csv", "--edges", "edges.csv", "--target", "rain", "--out", "g"), "g"),
    ("compare", ("compare", "--datasets", "basic", "--epochs", 1, "--seeds", 1, "--results", "r.sqlite"), "r.sqlite"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "out"), [case[1:] for case in FULL], ids=[case[0] for case in FULL]
)
def test_full_disk_exits_2_with_one_line_and_no_partial_file(
    arguments: tuple[object, ...], out: str, qpignn: Run, here: Path
) -> None:
    with small_files(1000):
        done = qpignn(*arguments)
    assert done.code == 2, done.err
    (line,) = lines(done.err)
    assert re.search(rf"{out}.*: expected .*, got .*; free some space", line), line
    left = [path for path in here.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in left if path.stat().st_size > 1000]
    if arguments[0] in ("fit", "convert"):
        assert not (here / out / "fit.json").exists()
        assert not (here / out / "mapped.json").exists()


def test_compare_with_a_results_file_that_cannot_be_written_exits_2(
    qpignn: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = Store.put

    def full(store: Store, *row: Any) -> None:
        with small_files(1000):
            put(store, *row)

    monkeypatch.setattr(Store, "put", full)
    done = qpignn(
        "compare", "--datasets", "basic", "--epochs", 1, "--seeds", 1, "--results", "r.sqlite"
    )
    assert done.code == 2
    assert re.search(
        r"error: r.sqlite: expected a results file to read and write, got .*; free some", done.err
    )


@pytest.mark.parametrize("arguments", [case[1] for case in FULL], ids=[case[0] for case in FULL])
def test_read_only_folder_is_refused_before_training(
    arguments: tuple[object, ...], qpignn: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may
    done = qpignn(*arguments)
    assert done.code == 2
    assert re.search(r"error: .*: cannot be written: .* is read-only", done.err)
    assert "epoch" not in done.err


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_predict_to_a_folder_that_becomes_read_only_exits_2(
    number: int, qpignn: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", refuse)
    done = qpignn("predict", "fitted", "--out", "i.csv")
    assert done.code == 2
    message = (
        f"i.csv: expected a place to write to, got {os.strerror(number)}; choose a folder you may"
    )
    assert message in done.err


def test_file_without_read_permission_exits_2(
    qpignn: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    done = qpignn(*FIT)
    assert done.code == 2
    assert "error: nodes.csv: cannot be read as a table: [Errno 13] Permission denied" in done.err


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the address space")
@pytest.mark.parametrize("kilobytes", [150_000, 600_000, 900_000, 2_100_000])
def test_main_small_address_space_ends_with_one_sentence(here: Path, kilobytes: int) -> None:
    """Under such limits libraries raise errors of many kinds, abort or hang while they load."""
    fit = shlex.join([sys.executable, "-m", "qpignn", *FIT])
    command = f"ulimit -v {kilobytes}; exec {fit}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=here, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: expected an address space of at least")
    assert done.stderr.count("\n") == 1
    assert "(ulimit -v)" in done.stderr


@pytest.mark.parametrize(
    "error",
    [
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        OSError("libgomp.so.1: failed to map segment from shared object"),
    ],
)
def test_describe_error_library_beyond_address_space_exits_2(error: Exception) -> None:
    message, code = describe_error(error)
    assert code == 2
    assert "raise the limit (ulimit -v)" in message
    assert describe_error(ImportError("cannot import name 'x'"))[1] == 1
    assert describe_error(OSError(errno.ENOMEM, "Cannot allocate memory"))[1] == 2
