"""The symmetric matrix of a graph's edges: values computed by hand."""

import torch

from qpignn.data.adjacency import symmetric_adjacency

EDGES = torch.tensor([[0, 0, 1, 1, 2], [1, 1, 1, 2, 1]])  # 0 → 1 twice, a self-loop, 1 ⇄ 2


def test_without_weights_every_neighbour_counts_once() -> None:
    matrix = symmetric_adjacency(EDGES, None, 4).toarray()
    assert matrix.tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]


def test_weights_of_repeated_edges_add_and_the_larger_direction_counts() -> None:
    weight = torch.tensor([1.0, 2.0, 5.0, 4.0, 1.0])
    matrix = symmetric_adjacency(EDGES, weight, 4).toarray()
    assert matrix[0, 1] == matrix[1, 0] == 3 / 3.5
    assert matrix[1, 2] == matrix[2, 1] == 4 / 3.5


def test_an_edge_repeated_256_times_is_kept() -> None:
    edges = torch.tensor([[0] * 256, [1] * 256])
    assert symmetric_adjacency(edges, None, 2).toarray().tolist() == [[0, 1], [1, 0]]


def test_no_edges_and_weights_of_zero_leave_nothing() -> None:
    nothing = torch.zeros((2, 0), dtype=torch.long)
    assert symmetric_adjacency(nothing, torch.zeros(0), 2).nnz == 0
    assert symmetric_adjacency(EDGES, torch.zeros(5), 3).nnz == 0
