from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from qpignn.diagnostics.shift import MOST, graph_shift, label_shift
from qpignn.diagnostics.two_sample import FEWEST
from qpignn.errors import ArrayError, GraphError

Rng = np.random.Generator


def joined(ends: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.concatenate([ends, ends[::-1]], axis=1))


def graph(rng: Rng, nodes: int = 400, columns: int = 3) -> Data:
    return Data(
        x=torch.from_numpy(rng.normal(size=(nodes, columns))).float(),
        y=torch.zeros(nodes, dtype=torch.float64),
        edge_index=joined(rng.integers(0, nodes, (2, 4 * nodes))),
        feature_names=["age", "rent", "noise"] if columns == 3 else None,
    )


def chain(rng: Rng, nodes: int = 400) -> Data:
    data = graph(rng, nodes)
    data.edge_index = joined(np.stack([np.arange(nodes - 1), np.arange(1, nodes)]))
    return data


def cliques(rng: Rng) -> Data:
    """Forty cliques of ten nodes whose features are alike inside a clique."""
    ends = np.array(
        [(10 * c + i, 10 * c + j) for c in range(40) for i in range(10) for j in range(i)]
    )
    data = graph(rng)
    data.edge_index = joined(ends.T)
    data.x += 3 * torch.from_numpy(rng.normal(size=(40, 3))).float().repeat_interleave(10, dim=0)
    return data


def wide(rng: Rng) -> Data:
    return graph(rng, 300, 300)


def hide(data: Data, chance: float | np.ndarray, rng: Rng) -> Data:
    data.y[torch.from_numpy(rng.random(len(data.y)) < chance)] = torch.nan
    return data


@pytest.mark.parametrize("make", [graph, chain, cliques, wide])
def test_label_shift_labels_missing_at_random_rarely_warns(make: Callable[[Rng], Data]) -> None:
    warnings = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        shift = label_shift(hide(make(rng), 0.4, rng))
        assert shift is not None
        warnings += shift.significant
    assert warnings <= 4  # more have a chance of 0.1 % at the nominal rate of 2 %


def test_label_shift_labels_on_one_kind_of_node_are_detected_and_named() -> None:
    data = graph(np.random.default_rng(0))
    data.y[data.x[:, 1] > 0.3] = torch.nan
    shift = label_shift(data)
    assert shift is not None
    assert shift.notable
    assert shift.auc > 0.95
    assert shift.columns[0][0] == "rent"
    assert shift.compared == int((data.x[:, 1] > 0.3).sum())
    assert shift.reference + shift.compared == 400


def test_label_shift_labels_in_one_half_of_a_chain_are_detected() -> None:
    data = chain(np.random.default_rng(0))
    data.y[200:] = torch.nan
    shift = label_shift(data)
    assert shift is not None
    assert shift.notable
    assert shift.columns[0] == ("place in the graph", pytest.approx(1, abs=0.1))


def test_label_shift_a_community_without_labels_is_named_after_its_hub() -> None:
    rng = np.random.default_rng(0)
    inside = [rng.integers(100 * c, 100 * (c + 1), (2, 800)) for c in range(4)]
    data = graph(rng)
    data.edge_index = joined(np.concatenate(inside, axis=1))
    data.node_id = [f"n{i}" for i in range(400)]
    hide(data, np.where(np.arange(400) < 100, 0.9, 0.3), rng)
    shift = label_shift(data)
    assert shift is not None
    assert shift.notable
    around = [name for name, _ in shift.columns if name.startswith("community around n")]
    assert int(around[0].removeprefix("community around n")) < 100


def test_label_shift_hubs_without_labels_are_detected_by_degree() -> None:
    rng = np.random.default_rng(0)
    data = graph(rng)
    ends = np.stack([rng.integers(0, 400, 2000), (400 * rng.random(2000) ** 3).astype(int)])
    data.edge_index = joined(ends)
    degree = np.bincount(ends.ravel(), minlength=400)
    hide(data, np.where(degree > np.median(degree), 0.7, 0.3), rng)
    shift = label_shift(data)
    assert shift is not None
    assert shift.notable
    assert "degree" in [name for name, _ in shift.columns]


def test_label_shift_uses_neighbours_features() -> None:
    rng = np.random.default_rng(0)
    data = graph(rng)
    source, target = data.edge_index.numpy()
    total = np.bincount(target, weights=data.x[:, 0].double().numpy()[source], minlength=400)
    hide(data, np.where(total > 0, 0.75, 0.25), rng)
    shift = label_shift(data)
    assert shift is not None
    assert shift.columns[0][0] == "neighbours' mean of age"


def test_label_shift_uses_coordinates_if_finite() -> None:
    rng = np.random.default_rng(0)
    data = graph(rng)
    data.pos = torch.from_numpy(rng.uniform(size=(400, 2)))
    data.y[data.pos[:, 1] > 0.6] = torch.nan
    shift = label_shift(data)
    assert shift is not None
    assert shift.columns[0][0] == "coordinate 2"
    for places in (data.pos.clone().fill_(torch.nan), data.pos[:10], torch.zeros(400)):
        data.pos = places
        shift = label_shift(data)
        assert shift is not None
        assert not shift.notable


def test_label_shift_feature_that_unlabelled_nodes_lack_is_named() -> None:
    rng = np.random.default_rng(0)
    data = graph(rng, 1000)
    features = torch.from_numpy(rng.random((1000, 500)) < 0.02)
    hide(data, 0.5, rng)
    features[:, 77] = torch.from_numpy(rng.random(1000) < 0.08) & ~torch.isnan(data.y)
    data.x, data.feature_names = features.float().to_sparse_csr(), None
    shift = label_shift(data)
    assert shift is not None
    assert shift.significant
    assert [name for name, _ in shift.columns] == ["feature 77"]


def test_label_shift_number_of_sparse_features_is_compared() -> None:
    rng = np.random.default_rng(0)
    data = hide(graph(rng, 600), 0.5, rng)
    chance = torch.where(torch.isnan(data.y), 0.03, 0.02)[:, None]  # no single word tells much
    dense = (torch.from_numpy(rng.random((600, 400))) < chance).float()
    data.x, data.feature_names = dense.to_sparse_csr(), None
    shift = label_shift(data)
    assert shift is not None
    assert shift.columns[0][0] == "number of features"


def test_label_shift_without_edges_compares_features() -> None:
    rng = np.random.default_rng(0)
    data = graph(rng)
    data.edge_index = torch.empty((2, 0), dtype=torch.long)
    shift = label_shift(hide(data, 0.5, rng))
    assert shift is not None
    assert not shift.notable
    data.y[:] = 0.0
    data.y[data.x[:, 0] > 0] = torch.nan
    shift = label_shift(data)
    assert shift is not None
    assert shift.columns[0][0] == "age"


def test_label_shift_too_few_of_a_kind_are_not_compared() -> None:
    data = graph(np.random.default_rng(0))
    data.y[: FEWEST - 1] = torch.nan
    assert label_shift(data) is None
    data.y[:FEWEST] = torch.nan
    assert label_shift(data) is not None


def test_label_shift_counts_all_nodes_of_a_large_graph() -> None:
    rng = np.random.default_rng(0)
    data = hide(graph(rng, 3 * MOST), 0.5, rng)
    data.x[torch.isnan(data.y), 0] += 0.5
    shift = label_shift(data)
    assert shift is not None
    assert shift.notable
    assert (shift.reference + shift.compared, shift.compared) == (
        3 * MOST,
        int(torch.isnan(data.y).sum()),
    )
    assert label_shift(data) == shift


def test_graph_shift_draws_of_one_population_rarely_differ() -> None:
    warnings = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        shift = graph_shift(graph(rng), graph(rng, 250))
        assert shift is not None
        assert (shift.reference, shift.compared) == (400, 250)
        warnings += shift.significant
    assert warnings <= 4


def test_graph_shift_column_and_degree_that_differ_are_named() -> None:
    rng = np.random.default_rng(0)
    first, second = graph(rng), graph(rng)
    second.x[:, 2] += 1
    shift = graph_shift(first, second)
    assert shift is not None
    assert shift.notable
    assert [name for name, _ in shift.columns] == ["noise"]
    second = graph(rng)
    second.edge_index = second.edge_index[:, ::4]
    shift = graph_shift(first, second)
    assert shift is not None
    assert [name for name, _ in shift.columns] == ["degree"]


def test_graph_shift_compares_labelled_nodes_of_the_fit_with_chosen_ones() -> None:
    rng = np.random.default_rng(0)
    first, second = graph(rng), graph(rng)
    first.y[first.x[:, 0] > 0] = torch.nan  # labelled ones have a low age
    chosen = second.x[:, 0] < 0
    shift = graph_shift(first, second, chosen)
    assert shift is not None
    assert (shift.reference, shift.compared) == (int((first.x[:, 0] <= 0).sum()), int(chosen.sum()))
    assert not shift.notable
    all_nodes = graph_shift(first, second)
    assert all_nodes is not None
    assert all_nodes.columns[0][0] == "age"


def test_graph_shift_sparse_and_dense_features_can_be_compared() -> None:
    rng = np.random.default_rng(0)
    first, second = graph(rng), graph(rng)
    for data in (first, second):
        data.x, data.feature_names = (data.x > 1).float(), None
    second.x[:, 1] = 0.0
    first.x = first.x.to_sparse_csr()
    shift = graph_shift(first, second)
    assert shift is not None
    assert "feature 1" in [name for name, _ in shift.columns]


def test_graph_shift_too_few_nodes_are_not_compared_and_other_columns_refused() -> None:
    rng = np.random.default_rng(0)
    assert graph_shift(graph(rng), graph(rng, 15)) is None
    with pytest.raises(GraphError, match="the 3 feature columns of the training graph, got 5"):
        graph_shift(graph(rng), graph(rng, columns=5))
    for wrong in (np.ones(3, dtype=bool), np.arange(400)):
        with pytest.raises(ArrayError, match="nodes: expected 400 booleans"):
            graph_shift(graph(rng), graph(rng), wrong)
