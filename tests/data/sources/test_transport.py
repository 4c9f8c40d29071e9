from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest
from torch_geometric.data import Data

from qpignn import load_dataset
from qpignn.data.sources.transport import CITIES
from qpignn.errors import ReadError

pytestmark = pytest.mark.filterwarnings("ignore:.* is not the original file")

NET = """<NUMBER OF NODES> 4
~\tTail\tHead\tCapacity\tLength\tTime\tB\tPower\tSpeed\tToll\tType\t;
\t1\t3\t100\t10\t1\t0.15\t4\t50\t0\t1\t;
\t1\t2\t200\t20\t2\t0.15\t4\t60\t0\t1\t;
\t2\t3\t300\t30\t3\t0.15\t4\t70\t0\t1\t;
\t3\t1\t400\t40\t4\t0.15\t4\t80\t0\t1\t;
"""
FLOW = """~ \tTail \tHead \t: \tVolume \tCost \t;
\t3 \t1 \t: \t40.0 \t9.9 \t;
\t2 \t3 \t: \t30.0 \t9.9 \t;
\t1 \t2 \t: \t20.0 \t9.9 \t;
\t1 \t3 \t: \t10.0 \t9.9 \t;
"""


@pytest.fixture
def small_city(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "transportation" / "Anaheim"
    folder.mkdir(parents=True)
    (folder / "Anaheim_net.tntp").write_text(NET)
    (folder / "Anaheim_flow.tntp").write_text(FLOW)
    monkeypatch.setenv("QPIGNN_DATA_DIR", str(tmp_path))
    return folder


def test_links_are_nodes_in_one_order(small_city: Path) -> None:
    data = load_dataset("anaheim")
    assert list(data.node_id) == ["1-3", "1-2", "2-3", "3-1"]
    # capacity, length, time, speed and flow all rise by equal steps down these links
    steps = [-(1.8**0.5), -(0.2**0.5), 0.2**0.5, 1.8**0.5]
    for column in (*data.x.t(), data.y):
        assert column.tolist() == pytest.approx(steps)


def test_transport_edges_hand_computed(small_city: Path) -> None:
    data = load_dataset("anaheim")
    names = data.node_id
    joined = {frozenset((names[a], names[b])) for a, b in data.edge_index.t().tolist()}
    assert joined == {
        frozenset(pair)
        for pair in [
            ("3-1", "1-3"), ("3-1", "1-2"), ("1-3", "1-2"),  # at crossing 1
            ("1-2", "2-3"),  # at crossing 2
            ("1-3", "2-3"), ("2-3", "3-1"),  # at crossing 3
        ]
    }  # fmt: skip
    assert data.edge_index.shape[1] == 12


def test_transport_link_without_flow_is_refused(small_city: Path) -> None:
    flow = small_city / "Anaheim_flow.tntp"
    flow.write_text("\n".join(FLOW.splitlines()[:-1]))
    with pytest.raises(ReadError, match="expected a flow for every link, got none for"):
        load_dataset("anaheim")


@pytest.mark.parametrize("name", ["anaheim", "chicago"])
def test_real_joins_share_a_crossing(real: Callable[..., Data], name: str) -> None:
    """Any two joined links have an end in common, and links that lead on are always joined."""
    data = real(name)
    links = [tuple(map(int, link.split("-"))) for link in data.node_id]
    joined = {tuple(pair) for pair in data.edge_index.t().tolist()}
    assert all(set(links[a]) & set(links[b]) for a, b in joined)
    line = nx.line_graph(nx.DiGraph(links))
    position = {link: i for i, link in enumerate(links)}
    leads_on = {(position[a], position[b]) for a, b in line.edges}
    assert leads_on <= joined
    city = CITIES[name]
    assert all(city.first <= end <= city.last for link in links for end in link)


def test_transport_published_edges_repeat_the_authors_mistake(real: Callable[..., Data]) -> None:
    data = real("anaheim", "published")
    links = [set(map(int, link.split("-"))) for link in data.node_id]
    shares = [bool(links[a] & links[b]) for a, b in data.edge_index.t().tolist()]
    assert sum(shares) / len(shares) < 0.5
