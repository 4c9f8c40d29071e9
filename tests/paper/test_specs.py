from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from qpignn.data.catalog import BENCHMARK
from qpignn.names import PROTOCOLS
from qpignn.paper import entries, find_spec, specs
from qpignn.paper.pictures import check_shown
from qpignn.paper.plan import COUNTS, METRICS, check_spec
from qpignn.paper.spec import REAL, SYNTHETIC, Spec, best_lambdas, read_facts

HERE = Path(entries.__file__).parent
WANTED = {  # what the paper has
    *("main", "headline", "mpe_cwc", "sharpness_winkler", "robustness", "exchangeability"),
    *("structural_shift", "rqr_loss", "target_coverage", "lambda_opt", "width_penalty"),
    *("ablation_synthetic", "ablation_real", "coverage_error", "datasets", "baselines"),
    *("resources", "trajectories_synthetic", "trajectories_real", "bands_synthetic", "bands_real"),
    *("shift_radar", "ablation_scatter", "lambda_curve", "lambda_best"),
}


def test_all_tables_and_figures_are_there() -> None:
    assert set(specs()) == WANTED
    assert {*SYNTHETIC, *REAL} == set(BENCHMARK)


@pytest.mark.parametrize("spec", specs().values(), ids=specs())
def test_spec_is_valid_and_at_most_40_lines(spec: Spec) -> None:
    check_spec(spec)
    check_shown(spec)
    assert len((HERE / f"{spec.name}.py").read_text().splitlines()) <= 40
    labels = {variant.label for variant in spec.variants}
    if spec.facts:
        facts = read_facts(spec.facts)
        assert {row["dataset"] for row in facts} <= {*spec.datasets}
        assert {row["metric"] for row in facts} <= {*spec.metrics} <= {*METRICS, *COUNTS}
        assert {row["condition"] for row in facts} <= {c.label for c in spec.conditions}
        left_out = {row["variant"] for row in facts} - labels - {""}
        assert left_out <= {"CP"}  # a resource row of the paper that no other table has


def test_specs_import_no_torch() -> None:
    code = "import sys; from qpignn.paper import specs; specs(); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_facts_equal_figures_of_the_paper() -> None:
    main = {(r["variant"], r["dataset"], r["metric"]): r["value"] for r in read_facts("main")}
    assert main["SQR", "basic", "picp"] == "0.85"
    assert main["CF-GNN", "ba", "mpiw"] == "68.27"
    assert best_lambdas()["unemployment"] == 0.193
    assert len(best_lambdas()) == 19


def test_every_variant_has_a_protocol() -> None:
    for spec in specs().values():
        for variant in spec.variants:
            assert any(getattr(variant, protocol) is not None for protocol in PROTOCOLS)


def test_find_spec_file_without_a_name_has_that_of_the_file(tmp_path: Path) -> None:
    code = "from qpignn.paper.spec import Spec\nSPEC = Spec(title='A', place='', text=(('a',),))"
    (tmp_path / "words.py").write_text(code)
    assert find_spec(str(tmp_path / "words.py")).name == "words"
    (tmp_path / "words.py").write_text(code.replace("title", "name='own', title"))
    assert find_spec(str(tmp_path / "words.py")).name == "own"
