"""Curves of a fit: as a table, and through JSON."""

import json
from dataclasses import asdict
from typing import Any

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


def test_history_from_dict_round_trip_and_invalid_values() -> None:
    history = History(
        [2.0, 1.0], [0.5, 0.9], [1.0, 3.0], {1: 3.0}, best_epoch=1, stopped="patience"
    )
    values = json.loads(json.dumps(asdict(history)))
    assert History.from_dict(values) == history
    for name, wrong in (
        ("loss", [2.0]),  # of another length than the others
        ("width", [1, 2]),
        ("coverage", "ab"),
        ("held_out", {"1": "3"}),
        ("best_epoch", True),
        ("stopped", None),
    ):
        with pytest.raises(ValueError, match="lists of numbers"):
            History.from_dict({**values, name: wrong})


def test_history_interrupted_between_two_curves_drops_the_unfinished_epoch() -> None:
    history = History(loss=[3.0, 2.0, 1.0], coverage=[0.1, 0.2], width=[4.0, 5.0])
    history.drop_unfinished_epoch()
    assert (history.loss, history.coverage, history.width) == ([3.0, 2.0], [0.1, 0.2], [4.0, 5.0])


def test_history_warning_names_the_epochs_of_an_interrupted_training_only() -> None:
    history = History(loss=[1.0], coverage=[1.0], width=[1.0])
    assert history.warning() is None
    history.stopped = "patience"
    assert history.warning() is None
    history.interrupt(1, 1200)
    assert "interrupted after 1 of at most 1,200 epochs" in str(history.warning())
    older = History(loss=[1.0], coverage=[1.0], width=[1.0], stopped="interrupted")
    assert "interrupted after 1 epochs" in str(older.warning())  # saved before epochs were counted


@pytest.mark.parametrize("wrong", [{"done": -1}, {"planned": 1.5}, {"done": "7"}, {"done": True}])
def test_history_from_dict_with_wrong_numbers_of_epochs_is_refused(wrong: dict[str, Any]) -> None:
    values = asdict(History(loss=[1.0], coverage=[1.0], width=[1.0], stopped="interrupted"))
    with pytest.raises(ValueError, match="history"):
        History.from_dict({**values, **wrong})
