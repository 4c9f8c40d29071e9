"""Several processes that fit one model, started by torchrun as a user would start them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from qpignn import QpiGNN, load_dataset
from qpignn.runtime import distributed

RUN = [sys.executable, "-m", "torch.distributed.run"]
ENOUGH = 240  # seconds for a job of a few processes on a busy machine


def start(processes: int, *arguments: str, port: int) -> subprocess.Popen[str]:
    command = [*RUN, "--nproc-per-node", str(processes), "--master-port", str(port), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def free_port() -> int:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


SCRIPT = """
import sys
import torch
from qpignn import QpiGNN, load_dataset
from qpignn.runtime import distributed
settings = {settings}
model = QpiGNN(**settings).fit(load_dataset("basic", nodes=200))
assert distributed.world_size() == 1  # alone again
found = model.predict_interval(load_dataset("basic", nodes=200))
found.to_frame().to_csv(sys.argv[1] + f"/{{distributed.rank()}}.csv", index=False)
"""
ALIKE: dict[str, Any] = {
    "lambda_width": 0.05,
    "dtype": "float64",
    "dropout": 0.0,
    "patience": None,
    "epochs": 30,
    "batch_size": 100,
    "fan_out": 1000,
}


def test_two_ranks_give_the_numbers_of_one(tmp_path: Path) -> None:
    """With all neighbours and no held-out nodes, the mean of two halves is that of the whole."""
    script = tmp_path / "job.py"
    script.write_text(SCRIPT.format(settings=ALIKE))
    job = start(2, str(script), str(tmp_path), port=free_port())
    output, _ = job.communicate(timeout=ENOUGH)
    assert job.returncode == 0, output
    data = load_dataset("basic", nodes=200)
    alone = QpiGNN(**ALIKE).fit(data).predict_interval(data)
    for rank in (0, 1):
        frame = pd.read_csv(tmp_path / f"{rank}.csv")
        np.testing.assert_allclose(frame["lower"], alone.lower, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(frame["upper"], alone.upper, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_fit_with_a_dead_rank_ends_and_resumes_with_another_number_of_ranks(tmp_path: Path) -> None:
    out = tmp_path / "model"
    fit = ["-m", "qpignn", "fit", "--dataset", "basic", "--out", str(out), "--lambda-width", "0.05"]
    fit += ["--epochs", "600", "--set", "patience=600", "--set", "batch_size=256"]
    fit += ["--checkpoint-every", "0.2"]
    job = start(2, *fit, port=free_port())
    try:
        kept = out / "checkpoint" / "training-1.safetensors"
        deadline = time.monotonic() + ENOUGH
        while not kept.exists():
            assert job.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.2)
        os.kill(children(job.pid)[-1], signal.SIGKILL)
        output, _ = job.communicate(timeout=ENOUGH)
    finally:
        job.kill()
    assert job.returncode != 0
    assert "another one has ended" in output
    assert "--resume" in output
    assert not (out / "model.json").exists()
    again = subprocess.run(
        [sys.executable, *fit, "--resume", "--json"], capture_output=True, text=True, check=False
    )
    assert again.returncode == 0, again.stderr
    assert "resuming at epoch" in again.stderr
    assert json.loads(again.stdout)["epochs"] == 600
    assert not kept.exists()


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return sorted(int(word) for word in text.split())


def test_distributed_functions_of_one_rank_change_nothing() -> None:
    numbers = torch.arange(3.0)
    with distributed.process_group():
        distributed.average_over_ranks(numbers)
        distributed.barrier()
        assert distributed.from_first_rank(0.25) == 0.25
        done = [*distributed.split_work([1, 2, 3], lambda n: torch.full((n,), n), torch.empty)]
    assert numbers.tolist() == [0, 1, 2]
    assert [part.tolist() for part in done] == [[1], [2, 2], [3, 3, 3]]
    assert (distributed.rank(), distributed.world_size(), distributed.world_size_wanted()) == (
        0,
        1,
        1,
    )


@pytest.mark.parametrize("size", [1, 2, 3])
def test_split_work_does_every_job_once_and_shares_the_results(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without processes: what each rank would do, with the others' results handed to it."""
    jobs, results = [*range(7)], {}

    def broadcast(tensor: torch.Tensor, owner: int) -> None:
        results.setdefault((owner, len(sent)), tensor)
        sent.append(owner)

    done: list[int] = []
    monkeypatch.setattr(distributed, "world_size", lambda: size)
    monkeypatch.setattr(distributed.dist, "broadcast", broadcast)
    owners = []
    for rank in range(size):
        sent: list[int] = []
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        parts = [
            *distributed.split_work(jobs, lambda j: done.append(j) or torch.tensor(j), torch.zeros)
        ]
        assert len(parts) == 7
        owners.append(sent)
    assert sorted(done) == jobs
    assert all(order == owners[0] for order in owners)  # else they would wait for each other
