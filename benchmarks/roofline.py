"""What an epoch has to do at least, and how long this machine takes for as much of it.

Four kinds of work, each with a kernel that does nothing else, on numbers of the step's own size
(what fits in a cache moves faster than what does not):

- product: operations of dense products, 2·r·a·b for r×a by a×b numbers. Its kernel multiplies all
  hidden vectors by one matrix.
- gather: bytes of rows fetched along edges, with the rows' positions. Its kernel sums over
  neighbours with the graph's own adjacency, and back with the transposed one.
- lookup: the same for sparse features, whose rows are those of the first layer's weights.
- stream: bytes read and written in sequence. Its kernel copies all hidden vectors.

The least time of an epoch is the sum, over the kinds, of its work by the kernel's rate in the best
of its turns; the share of the roofline is that time by the epoch's median. Not counted: what is
once per node and not per number of its hidden vector (the loss), Adam, drawing neighbours, Python.

An epoch on the whole graph of n nodes, m edges and f features, of which r nodes carry loss and ℓ
edges run into these; vectors of w numbers of 4 bytes, positions of 4 bytes:

- product: 2·(4·n·f·w + 6·r·w² + 6·r·w). The first layer and its gradient, on features beside their
  means; two matrices of the second layer, each with two gradients; the head with two outputs and
  its two gradients.
- gather: 2·ℓ·(4·w + 4). The second layer's mean, and back.
- stream: 4·w·(6·n + 10·r). A layer's activation reads and writes, its gradient reads two and writes
  one, the bias' gradient reads one: 6. The mean's division reads and writes, on both ways: 4.

With sparse features of s stored numbers the first layer has no dense product; lookup is
4·s·(4·w + 8) (two matrices, both ways), gather has 2·m·(4·w + 4) more, and stream has 4·w·9·n more:
the mean's division, and adding up the node's own part and the bias (5).

An epoch of minibatches: r seeds with t − r sampled neighbours in all, as above with t for n in what
concerns the first layer. Gather is t·(8·f + 8): rows of features with their means. Stream has
4·w·(4·t − 2·r) instead of the 4·r of the means: the mean reads every sampled row and writes every
seed's; on the way back rows are written, read and written.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from qpignn.encoders.sparse import SparseMatrix
from qpignn.methods.training_set import TrainingSet
from shapes import Shape
from steps import FAN_OUT, WIDTH, Epoch
from timing import Run

FLOAT = 4  # bytes
Kernel = tuple[Run, float]
"""What does one kind of work, and how much of it a run does."""


def work(epoch: Epoch, shape: Shape) -> dict[str, float]:
    """Return an epoch's work of each kind, of all its nets."""
    seen = epoch.seen
    assert seen is not None
    graph, given = seen.graph, len(seen.y)
    vector = FLOAT * WIDTH * epoch.nets
    rows = given + _sampled(seen) if seen.batch else graph.nodes
    layers = 6 * rows + 6 * given
    second = 6 * given * WIDTH**2 + 6 * given * WIDTH
    first = 4 * rows * shape.features * WIDTH
    if seen.batch:
        return {
            "product": 2 * (first + second),
            "gather": rows * (2 * FLOAT * shape.features + 8),
            "stream": vector * (layers + 4 * rows - 2 * given),
        }
    into_given, edges = (_entries(graph.matrix_for(left)) for left in (0, 1))
    if not isinstance(graph.features, SparseMatrix):
        return {
            "product": 2 * epoch.nets * (first + second),
            "gather": 2 * into_given * (vector + 4),
            "stream": vector * (layers + 4 * given),
        }
    return {
        "product": 2 * epoch.nets * second,
        "gather": 2 * (into_given + edges) * (vector + 4),
        "lookup": 4 * _entries(graph.features) * (vector + 8),
        "stream": vector * (layers + 4 * given + 9 * rows),
    }


def kernels(epoch: Epoch, shape: Shape) -> dict[str, Kernel]:
    """Return a kernel for each kind of work, on numbers of the size of one of its steps."""
    seen = epoch.seen
    assert seen is not None
    graph, wide = seen.graph, WIDTH * epoch.nets
    rows = graph.nodes
    if seen.batch:
        rows = (len(seen.y) + _sampled(seen)) // -(-len(seen.y) // seen.batch.size)
    draw = torch.Generator().manual_seed(0)
    vectors, out = torch.randn(rows, wide, generator=draw), torch.empty(rows, wide)
    runs = {
        "product": _product(vectors, out, torch.randn(WIDTH, WIDTH, generator=draw)),
        "stream": (lambda: out.copy_(vectors), 2.0 * FLOAT * vectors.numel()),
    }
    if isinstance(graph.features, SparseMatrix):
        table = torch.randn(shape.features, wide, generator=draw)
        runs["lookup"] = _both_ways(graph.features, table, vectors)
    if seen.batch:
        assert isinstance(graph.features, Tensor)
        some = torch.randint(0, graph.nodes, (rows,), generator=draw)
        runs["gather"] = _selection(graph.features, some)
    else:
        mean = graph.matrix_for(0)
        sums = SparseMatrix(mean.starts, mean.columns, None, mean.shape)
        runs["gather"] = _both_ways(sums, vectors, vectors[: graph.rows])
    return runs


def least_seconds(work: Mapping[str, float], rates: Mapping[str, float]) -> float:
    """Return how long an epoch takes that does all its work at the kernels' rates."""
    return sum(amount / rates[kind] for kind, amount in work.items())


def _product(vectors: Tensor, out: Tensor, matrix: Tensor) -> Kernel:
    left, place = vectors.view(-1, len(matrix)), out.view(-1, len(matrix))
    return lambda: torch.mm(left, matrix, out=place), 2.0 * left.numel() * len(matrix)


def _both_ways(matrix: SparseMatrix, there: Tensor, back: Tensor) -> Kernel:
    def run() -> None:
        matrix.multiply(there)
        matrix.multiply(back, transposed=True)

    position_and_value = 4 if matrix.values is None else 8
    return run, 2.0 * _entries(matrix) * (FLOAT * there.shape[1] + position_and_value)


def _selection(table: Tensor, rows: Tensor) -> Kernel:
    place = torch.empty(len(rows), table.shape[1])
    amount = len(rows) * (FLOAT * table.shape[1] + 8.0)
    return lambda: torch.index_select(table, 0, rows, out=place), amount


def _entries(matrix: SparseMatrix) -> int:
    return matrix.columns.numel()


def _sampled(seen: TrainingSet) -> int:
    """How many neighbours an epoch of minibatches draws."""
    assert seen.batch is not None
    return int(seen.graph.matrix.starts.diff()[seen.batch.positions].clamp(max=FAN_OUT).sum())
