import math

import pandas as pd
import pytest

from qpignn.reports.tables import (
    exploded_seeds,
    first_places,
    mean_ranks,
    not_first,
    over_seeds,
    ranking,
)


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


def test_ranking_hand_computed() -> None:
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


def score(method: str, dataset: str, seed: int, winkler: float) -> dict[str, object]:
    return {**row(dataset, 0.9, 0.1), "method": method, "seed": seed, "winkler": winkler}


def test_not_first_names_the_winner_and_the_paired_difference_in_standard_errors() -> None:
    rows = [
        *(score("ours", "er", seed, value) for seed, value in enumerate((1.0, 3.0, 2.0))),
        *(score("other", "er", seed, value) for seed, value in enumerate((0.9, 2.8, 1.7))),
        *(score("ours", "ba", seed, 1.0) for seed in range(3)),
        *(score("other", "ba", seed, 2.0) for seed in range(3)),
    ]
    (line,) = not_first(rows, "ours").to_dict("records")
    assert (line["dataset"], line["first"]) == ("er", "other")
    assert line["excess"] == pytest.approx(6 / 5.4 - 1)
    # differences 0.1, 0.2, 0.3: mean 0.2, deviation 0.1, standard error 0.1 / √3
    assert line["standard_errors"] == pytest.approx(2 * 3**0.5)
    assert not_first(rows, "other")["dataset"].tolist() == ["ba"]
    alone = [line for line in rows if line["seed"] == 0]
    assert math.isnan(not_first(alone, "ours")["standard_errors"][0])


def test_mean_ranks_have_t_intervals_over_data_sets() -> None:
    places = {"a": (1, 1, 2), "b": (2, 3, 1), "c": (3, 2, 3)}
    rows = [
        score(method, dataset, 0, float(place))
        for method, every in places.items()
        for dataset, place in zip(("er", "ba", "grid"), every, strict=True)
    ]
    table = mean_ranks(ranking(rows)).set_index("method")
    assert table.index.tolist() == ["a", "b", "c"]
    assert table["rank"].tolist() == pytest.approx([4 / 3, 2, 8 / 3])
    # two degrees of freedom: t(0.975) = 4.302653; deviation of (1, 1, 2) is 1/√3
    reach = 4.302653 * (1 / 3**0.5) / 3**0.5
    assert table.loc["a", "rank_low"] == pytest.approx(4 / 3 - reach, abs=1e-5)
    assert table.loc["a", "rank_high"] == pytest.approx(4 / 3 + reach, abs=1e-5)
    # scores over the best: 1, 1, 2 → geometric mean 2^(1/3)
    assert table.loc["a", "ratio"] == pytest.approx(2 ** (1 / 3))
    low, high = table.loc["a", ["ratio_low", "ratio_high"]]
    assert low * high == pytest.approx(2 ** (2 / 3))  # the interval is of the logarithm
    single = mean_ranks(ranking([score("a", "er", 0, 1.0)]))
    assert single["rank"].tolist() == [1.0]
    assert math.isnan(single["rank_low"][0])


def widths(*values: float, method: str = "a") -> pd.DataFrame:
    lines = [
        {"dataset": "er", "method": method, "seed": i, "mpiw": w} for i, w in enumerate(values)
    ]
    return pd.DataFrame(lines)


def test_exploded_seeds_are_far_above_the_median_of_the_others() -> None:
    by = ["dataset", "method"]
    (line,) = exploded_seeds(widths(0.1, 0.2, 1.6, 0.3), by).to_dict("records")
    assert (line["dataset"], line["method"], line["seed"]) == ("er", "a", 2)
    assert line["mpiw"] == 1.6
    assert line["median"] == pytest.approx(0.2)
    assert line["mean"] == pytest.approx(0.55)
    assert line["mean_without"] == pytest.approx(0.2)
    for ordinary in (
        widths(0.1, 0.2, 0.9, 0.3),  # less than five times
        widths(0.001, 0.002, 0.04, 0.003),  # narrow whatever the others are
        widths(0.1, 9.0),  # two seeds: which of them is wrong?
        pd.DataFrame(),
    ):
        assert exploded_seeds(ordinary, by).empty
    assert exploded_seeds(widths(0.1, float("inf"), 0.1), by)["seed"].tolist() == [1]
    both = pd.concat([widths(0.1, 0.1, 0.1), widths(0.1, 2.0, 0.1, method="b")])
    assert exploded_seeds(both, by)["method"].tolist() == ["b"]
