"""Nodes as units: counts, ids, targets, masks, and what encoders may see."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from qpignn.errors import ArrayError, GraphError, SplitError, UnknownNameError
from qpignn.tasks import TASKS, FitInputs, NodeTask, find_task
from qpignn.tasks.base import unit_mask

NAN = float("nan")


def graph(**fields: object) -> Data:
    """Four nodes with the targets 1, 2, unknown and 4."""
    x, edges = torch.arange(8.0).view(4, 2), torch.tensor([[0, 1], [1, 2]])
    return Data(x=x, edge_index=edges, y=torch.tensor([1.0, 2.0, NAN, 4.0]), **fields)


def mask(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.bool)


def test_find_task_by_name_or_error() -> None:
    assert isinstance(find_task("node"), NodeTask)
    assert [*TASKS] == ["node"]
    with pytest.raises(UnknownNameError, match="unknown task 'nod': did you mean node"):
        find_task("nod")


def test_units_are_nodes() -> None:
    task, data = NodeTask(), graph()
    assert task.count(data) == 4
    assert task.ids(data).tolist() == [0, 1, 2, 3]
    assert task.ids(graph(node_id=list("abcd"))).tolist() == ["a", "b", "c", "d"]
    assert task.targets(data)[[0, 1, 3]].tolist() == [1, 2, 4]
    assert task.weights(data) is None
    assert task.weights(graph(node_weight=torch.arange(4.0))).tolist() == [0, 1, 2, 3]
    assert task.readout(data, torch.arange(4)) is None
    assert task.fold_groups(data) is None


def test_given_default_is_labelled_and_not_test() -> None:
    task = NodeTask()
    assert task.given(graph()).tolist() == [True, True, False, True]
    data = graph(test_mask=mask(1, 0, 1, 0))
    assert task.given(data).tolist() == [False, True, False, True]
    assert task.test_units(data).tolist() == [True, False, False, False]
    split = graph(train_mask=mask(1, 0, 0, 0), val_mask=mask(0, 1, 0, 0))
    assert task.given(split).tolist() == [True, True, False, False]
    assert task.validation_units(split).tolist() == [False, True, False, False]


def test_given_by_a_mask_keeps_labelled_nodes() -> None:
    assert NodeTask().given(graph(), mask(0, 1, 1, 0)).tolist() == [False, True, False, False]


def test_given_weight_zero_is_not_given() -> None:
    data = graph(node_weight=torch.tensor([0.0, 1.0, 1.0, 1.0]))
    assert NodeTask().given(data).tolist() == [False, True, False, True]
    with pytest.raises(GraphError, match="expected weight on the given nodes, got zeros only"):
        NodeTask().given(data, mask(1, 0, 0, 0))


def test_given_errors_name_the_problem() -> None:
    with pytest.raises(SplitError, match="3 nodes are labelled, but the mask gives none"):
        NodeTask().given(graph(), mask(0, 0, 1, 0))
    with pytest.raises(SplitError, match="apart from the graph's test_mask, got 1 nodes in both"):
        NodeTask().given(graph(test_mask=mask(1, 0, 0, 0)), mask(1, 1, 0, 0))


def test_message_graph_has_no_hidden_target() -> None:
    data = graph()
    seen = NodeTask().message_graph(data, mask(1, 0, 0, 1))
    assert seen.y.isnan().tolist() == [True, False, True, True]
    assert data.y[0] == 1.0  # the graph itself is not changed


def test_fit_inputs_without_hidden_targets() -> None:
    inputs = FitInputs(graph(), mask(1, 1, 0, 0), NodeTask())
    assert inputs.without_hidden_targets().data.y.isnan().tolist() == [False, False, True, True]
    assert inputs.targets.tolist() == [1, 2]
    with pytest.raises(GraphError, match="expected at least one labelled node"):
        FitInputs(graph(), mask(0, 0, 1, 0), NodeTask()).without_hidden_targets()


@pytest.mark.parametrize("wrong", [[True], [0, 1, 2], "mask", [[True], [True, False]]])
def test_unit_mask_wrong_shape_or_type_is_refused(wrong: object) -> None:
    with pytest.raises(ArrayError, match="mask: expected 3 booleans, one per node"):
        unit_mask(wrong, 3)


def test_unit_mask_accepts_lists_arrays_and_tensors() -> None:
    for given in ([True, False], np.array([True, False]), mask(1, 0)):
        assert unit_mask(given, 2).tolist() == [True, False]
