from __future__ import annotations

from pathlib import Path

import pytest

from qpignn.errors import ReadError, SettingError, UnknownNameError
from qpignn.paper.reference_figures import compare_with_figures


def row(dataset: str, picp: float, mpiw: float) -> dict[str, object]:
    figures = {"confidence_level": 0.9, "picp": picp, "mpiw": mpiw}
    return {"dataset": dataset, "method": "qpignn", **figures}


ROWS = [row("er", 0.8, 0.1), row("er", 1.0, 0.3), row("ba", 0.7, 0.5)]


def test_compare_with_figures_gives_differences_of_means(tmp_path: Path) -> None:
    path = tmp_path / "paper.csv"
    path.write_text("model,dataset,metric,value\nA,er,picp,0.95\nA,er,mpiw,0.5\nB,er,picp,0.1\n")
    table = compare_with_figures(ROWS, path, "A")
    assert table["dataset"].tolist() == ["er"]
    assert table["picp_difference"].tolist() == pytest.approx([-0.05])
    assert table["mpiw_difference"].tolist() == pytest.approx([-0.3])
    with pytest.raises(UnknownNameError, match="unknown model 'C'"):
        compare_with_figures(ROWS, path, "C")
    with pytest.raises(SettingError, match="one method at one level"):
        compare_with_figures([*ROWS, {**ROWS[0], "confidence_level": 0.5}], path, "A")
    with pytest.raises(SettingError, match="has none of the data sets 'ba'"):
        compare_with_figures(ROWS[2:], path, "A")
    with pytest.raises(ReadError, match=r"absent\.csv: expected a CSV of published figures"):
        compare_with_figures(ROWS, tmp_path / "absent.csv", "A")
    path.write_text("name,value\n")
    with pytest.raises(ReadError, match="expected the columns"):
        compare_with_figures(ROWS, path, "A")


def test_compare_with_figures_of_cf_gnn_is_in_the_unit_of_the_target(tmp_path: Path) -> None:
    path = tmp_path / "paper.csv"
    path.write_text("model,dataset,metric,value\nCF-GNN,er,picp,0.9\nCF-GNN,er,mpiw,3.0\n")
    table = compare_with_figures([{**ROWS[0], "mpiw_raw": 2.5}], path, "CF-GNN")
    assert table["mpiw_difference"].tolist() == pytest.approx([-0.5])
