"""Curves of a fit: as a table, and through JSON."""

import json
from dataclasses import asdict

import pytest

from qpignn.training.history import History


def test_held_out_scores_are_a_column_only_where_there_are_some() -> None:
    history = History(loss=[2.0, 1.0], coverage=[0.5, 0.9], width=[1.0, 3.0])
    assert list(history.to_frame().columns) == ["loss", "coverage", "width"]
    history.held_out = {0: 4.0, 1: 3.0}
    assert history.to_frame()["held_out"].tolist() == [4.0, 3.0]
    del history.held_out[1]  # interrupted between the two
    assert history.to_frame()["held_out"].isna().tolist() == [False, True]
    assert history.to_frame().index.name == "epoch"
    assert len(history) == 2


def test_a_history_comes_back_from_json_and_others_are_refused() -> None:
    history = History(
        [2.0, 1.0], [0.5, 0.9], [1.0, 3.0], {1: 3.0}, best_epoch=1, stopped="patience"
    )
    words = json.loads(json.dumps(asdict(history)))
    assert History.from_dict(words) == history
    for name, wrong in (
        ("loss", [2.0]),  # of another length than the others
        ("width", [1, 2]),
        ("coverage", "ab"),
        ("held_out", {"1": "3"}),
        ("best_epoch", True),
        ("stopped", None),
    ):
        with pytest.raises(ValueError, match="curves of numbers"):
            History.from_dict({**words, name: wrong})
