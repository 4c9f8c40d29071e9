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
