import math
from pathlib import Path

import pytest

from qpignn.errors import ReadError, SettingError, UnknownNameError
from qpignn.reports.tables import against, first_places, over_seeds, ranking


def row(dataset: str, picp: float, mpiw: float) -> dict[str, object]:
    return {
        "dataset": dataset,
        "method": "qpignn",
        "confidence_level": 0.9,
        "picp": picp,
        "mpiw": mpiw,
        "mpiw_limit": 0.1 if dataset == "er" else None,
        "winkler": 1.0,
        "fit_seconds": 2.0,
    }


ROWS = [row("er", 0.8, 0.1), row("er", 1.0, 0.3), row("ba", 0.7, 0.5)]


def test_mean_and_deviation_over_seeds() -> None:
    table = over_seeds(ROWS)
    assert table["dataset"].tolist() == ["er", "ba"]
    assert table["seeds"].tolist() == [2, 1]
    assert table["picp_mean"].tolist() == pytest.approx([0.9, 0.7])
    assert table["picp_std"].iloc[0] == pytest.approx(0.02**0.5)
    assert table["limit"].iloc[0] == pytest.approx(2.0)  # 0.2 where 0.1 is possible
    assert math.isnan(table["limit"].iloc[1])


def test_differences_to_a_published_table(tmp_path: Path) -> None:
    path = tmp_path / "paper.csv"
    path.write_text("model,dataset,metric,value\nA,er,picp,0.95\nA,er,mpiw,0.5\nB,er,picp,0.1\n")
    table = against(ROWS, path, "A")
    assert table["dataset"].tolist() == ["er"]
    assert table["picp_difference"].tolist() == pytest.approx([-0.05])
    assert table["mpiw_difference"].tolist() == pytest.approx([-0.3])
    with pytest.raises(UnknownNameError, match="unknown model 'C'"):
        against(ROWS, path, "C")
    with pytest.raises(SettingError, match="one method at one level"):
        against([*ROWS, {**ROWS[0], "confidence_level": 0.5}], path, "A")
    with pytest.raises(SettingError, match="has none of the data sets 'ba'"):
        against(ROWS[2:], path, "A")
    with pytest.raises(ReadError, match=r"absent\.csv: expected a CSV of published figures"):
        against(ROWS, tmp_path / "absent.csv", "A")
    path.write_text("name,value\n")
    with pytest.raises(ReadError, match="expected the columns"):
        against(ROWS, path, "A")


def test_cf_gnn_is_compared_in_the_targets_own_unit(tmp_path: Path) -> None:
    path = tmp_path / "paper.csv"
    path.write_text("model,dataset,metric,value\nCF-GNN,er,picp,0.9\nCF-GNN,er,mpiw,3.0\n")
    table = against([{**ROWS[0], "mpiw_raw": 2.5}], path, "CF-GNN")
    assert table["mpiw_difference"].tolist() == pytest.approx([-0.5])


def test_ranks_by_hand() -> None:
    def line(method: str, picp: float, mpiw: float, winkler: float) -> dict[str, object]:
        return {**row("er", picp, mpiw), "method": method, "winkler": winkler}

    rows = [
        line("narrow", 0.7, 0.1, 2.0),  # covers too little to compete by width
        line("good", 0.89, 0.2, 1.0),
        line("wide", 1.0, 0.9, 1.5),
    ]
    ranks = ranking(rows).set_index("method")
    assert ranks["by_winkler"].to_dict() == {"narrow": 3, "good": 1, "wide": 2}
    assert math.isnan(ranks["by_width"]["narrow"])
    assert (ranks["by_width"]["good"], ranks["by_width"]["wide"]) == (1, 2)
    counts = first_places(ranking(rows)).set_index("method")
    assert counts["first_by_width"].to_dict() == {"narrow": 0, "good": 1, "wide": 0}
    assert counts["covers"].to_dict() == {"narrow": 0, "good": 1, "wide": 1}
    assert counts["winkler_over_best"]["wide"] == pytest.approx(1.5)


def test_over_seeds_one_sided_rows_have_no_widths() -> None:
    rows = [{**ROWS[0], "mpiw": None, "winkler": None, "mpiw_limit": None}]
    (line,) = over_seeds(rows).to_dict("records")
    assert line["picp_mean"] == ROWS[0]["picp"]
    assert math.isnan(line["mpiw_mean"])
