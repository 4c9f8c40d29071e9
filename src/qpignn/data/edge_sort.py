"""Edges sorted on disk, where memory does not hold them all.

Among n nodes the edge u → v is the number v·n + u, so that sorted numbers are edges sorted by
target, then source. Numbers go into files by their range. A file that fits into memory is sorted
and merged there; one that does not, because some nodes have very many edges, is divided again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from qpignn.data.graph import check_graph, simple_edges
from qpignn.data.mapped_arrays import array_file

MOST_PARTS = 128
BYTES_AN_EDGE = 160
"""What merging takes in memory for each edge."""

Whole = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float32] | None


class Block(NamedTuple):
    """Some edges and, where they have them, their weights."""

    source: Whole
    target: Whole
    weight: Weights


class Heap:
    """Edges of one range, in no order, in a file; their weights in another."""

    def __init__(self, room: Path, span: range, weighted: bool) -> None:
        self.span, self.weighted, self.size = span, weighted, 0
        self._edges = room / f"{span.start}-{span.stop}.edges"
        self._weights = room / f"{span.start}-{span.stop}.weights"

    def add(self, edges: Whole, weights: Weights) -> None:
        """Put edges on the heap."""
        with self._edges.open("ab") as file:
            file.write(edges.tobytes())
        if weights is not None:
            with self._weights.open("ab") as file:
                file.write(weights.tobytes())
        self.size += len(edges)

    def pieces(self, most: int) -> Iterator[tuple[Whole, Weights]]:
        """Read the heap from its beginning, so many edges at once."""
        for start in range(0, self.size, most):
            yield (
                np.fromfile(self._edges, np.int64, most, offset=8 * start),
                np.fromfile(self._weights, np.float32, most, offset=4 * start)
                if self.weighted
                else None,
            )

    def remove(self) -> None:
        """Free the disk."""
        self._edges.unlink(missing_ok=True)
        self._weights.unlink(missing_ok=True)


def heaped_edges(
    blocks: Iterable[Block], nodes: int, room: Path, *, weighted: bool, expected: int, memory: int
) -> list[Heap]:
    """Put edges on heaps in a folder, without self-loops; one heap's come before the next one's.

    Args:
        blocks: edges in any order.
        nodes: how many nodes there are.
        room: the folder.
        weighted: whether edges have weights.
        expected: about how many edges will come.
        memory: about how many bytes sorting a heap may take.
    """
    numbers = (_numbers(block, nodes) for block in blocks)
    parts = -(-expected // _limit(memory))
    return _divided(numbers, range(nodes * nodes), parts, room, weighted)


def sorted_edges(heaps: list[Heap], nodes: int, room: Path, *, memory: int) -> Iterator[Block]:
    """Give edges back by target, then source, each once.

    Weights of repeated edges are averaged. A heap is taken away once it is read.
    """
    for heap in heaps:
        yield from _sorted_heap(heap, nodes, room, _limit(memory))


def _numbers(block: Block, nodes: int) -> tuple[Whole, Weights]:
    apart = block.source != block.target
    weight = None if block.weight is None else block.weight[apart]
    return block.target[apart] * nodes + block.source[apart], weight


def _limit(memory: int) -> int:
    return max(1, memory // BYTES_AN_EDGE)


def _sorted_heap(heap: Heap, nodes: int, room: Path, limit: int) -> Iterator[Block]:
    if heap.size <= limit:
        for edges, weights in heap.pieces(limit):
            yield _merged(edges, weights, nodes)
    elif len(heap.span) == 1:  # one edge, very often
        yield _mean_of_one(heap, nodes, limit)
    else:
        parts = -(-heap.size // limit)
        heaps = _divided(heap.pieces(limit), heap.span, parts, room, heap.weighted)
        heap.remove()
        for part in heaps:
            yield from _sorted_heap(part, nodes, room, limit)
    heap.remove()


def _divided(
    pieces: Iterable[tuple[Whole, Weights]], span: range, parts: int, room: Path, weighted: bool
) -> list[Heap]:
    """Put edges on heaps by their range, so that one heap's all come before the next one's."""
    parts = min(max(parts, 2), MOST_PARTS)
    width = -(-len(span) // parts)
    heaps = [
        Heap(room, range(start, min(start + width, span.stop)), weighted)
        for start in range(span.start, span.stop, width)
    ]
    for edges, weights in pieces:
        place = ((edges - span.start) // width).astype(np.uint8)
        order = np.argsort(place, kind="stable")
        ends = np.cumsum(np.bincount(place, minlength=len(heaps)))
        for heap, mine in zip(heaps, np.split(order, ends[:-1]), strict=True):
            if len(mine):
                heap.add(edges[mine], None if weights is None else weights[mine])
    return heaps


def _merged(edges: Whole, weights: Weights, nodes: int) -> Block:
    target, source = np.divmod(edges, nodes)
    # simple_edges sorts by the first row
    ends, mean = simple_edges(
        torch.from_numpy(np.stack([target, source])),
        nodes,
        None if weights is None else torch.from_numpy(weights),
        directed=True,
    )
    return Block(ends[1].numpy(), ends[0].numpy(), None if mean is None else mean.numpy())


def _mean_of_one(heap: Heap, nodes: int, limit: int) -> Block:
    target, source = np.divmod(np.array([heap.span.start]), nodes)
    total = sum(
        float(weights.sum(dtype=np.float64))
        for _, weights in heap.pieces(limit)
        if weights is not None
    )
    mean = np.array([total / heap.size], dtype=np.float32) if heap.weighted else None
    return Block(source, target, mean)


def write_edges(
    room: Path,
    blocks: Iterable[Block],
    *,
    weighted: bool,
    told: Callable[[int], None] = lambda done: None,
) -> int:
    """Write sorted edges as ``edge_index.npy`` (and ``edge_weight.npy``); return how many.

    Raises:
        GraphError: where a weight is negative or infinite.
    """
    rows = [room / name for name in ("source", "target", "weight")]
    edges = 0
    with rows[0].open("wb") as source, rows[1].open("wb") as target, rows[2].open("wb") as weight:
        for block in blocks:
            source.write(block.source.tobytes())
            target.write(block.target.tobytes())
            if block.weight is not None:
                _check_weights(block.weight)
                weight.write(block.weight.tobytes())
            edges += len(block.source)
            told(edges)
    _joined(room / "edge_index.npy", "<i8", (2, edges), rows[:2])
    if weighted:
        _joined(room / "edge_weight.npy", "<f4", (edges,), rows[2:])
    return edges


def _check_weights(weight: npt.NDArray[np.float32]) -> None:
    """Judge weights by the rule of all graphs, on edges that lead nowhere."""
    nowhere = torch.zeros((2, 1), dtype=torch.long).expand(2, len(weight))
    graph = Data(x=torch.zeros(1, 1), edge_index=nowhere, edge_weight=torch.from_numpy(weight))
    check_graph(graph, need_target=False)


def _joined(path: Path, kind: str, shape: tuple[int, ...], parts: list[Path]) -> None:
    with array_file(path, kind, shape) as whole:
        for part in parts:
            with part.open("rb") as file:
                shutil.copyfileobj(file, whole, 1 << 20)
            part.unlink()
