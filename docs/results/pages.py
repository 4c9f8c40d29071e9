"""The pages of results: which studies each needs, and what its blocks are filled with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import beside_paper_blocks as beside
import comparison_blocks as compare
import default_blocks as default
import paper_blocks as paper
from measured import Measured
from qpignn.methods.catalog import ALL
from qpignn.paper import table_pictures as pictures
from qpignn.paper.pictures import draw
from studies import Comparison, PaperTable, Study
from words import paragraphs

Block = Callable[[Measured], str]
FIVE = ("sqr", "rqr", "mc_dropout", "bayesian", "evidential", "cqr", "cfgnn")

KNOWING = ("sqr", "rqr", "bayesian", "evidential", "deep_ensemble", "cqr")

EACH = Comparison((*ALL, "boosting"), 10, "--rank")
MANY = Comparison(
    (*EACH.methods, "conformal:sqr", "qpignn_single", *(f"ensemble:{name}" for name in FIVE)),
    10,
    "--rank",
)
KNOWN = Comparison((*EACH.methods, *(f"neighbours:{name}" for name in KNOWING)), 5, "--rank")
DEFAULT = ("qpignn",)
OTHER_LEVELS = Comparison(DEFAULT, 5, levels=(0.5, 0.8, 0.95))
UNLIKE = {
    "inductive": Comparison(DEFAULT, 5, view="inductive"),
    "degree": Comparison(DEFAULT, 5, split="degree"),
    "community": Comparison(DEFAULT, 5, split="community"),
}
MAIN, HEADLINE, RESOURCES = (PaperTable(name) for name in ("main", "headline", "resources"))
LAMBDA = PaperTable("lambda_best")
SHARPNESS, ERRORS = PaperTable("sharpness_winkler"), PaperTable("mpe_cwc")
ROBUSTNESS, SPLITS = PaperTable("robustness"), PaperTable("exchangeability")
SHIFT, LEVELS = PaperTable("structural_shift"), PaperTable("target_coverage")
RQR_LOSS, CURVE = PaperTable("rqr_loss"), PaperTable("lambda_curve")
ABLATION, SCATTER = PaperTable("ablation_synthetic"), PaperTable("ablation_scatter")
NODES, WALKS = PaperTable("coverage_error"), PaperTable("trajectories_synthetic")
BANDS, BANDS_REAL = PaperTable("bands_synthetic"), PaperTable("bands_real")
SIZES = PaperTable("datasets")
OLD_MAIN = PaperTable("main", "published", 5)
OLD_ROBUSTNESS, OLD_SHIFT, OLD_CURVE, OLD_ABLATION, OLD_SIZES = (
    PaperTable(name, "published")
    for name in (
        *("robustness", "structural_shift", "lambda_curve", "ablation_synthetic", "datasets"),
    )
)


@dataclass(frozen=True)
class Page:
    """A hand-written page with generated blocks.

    Attributes:
        path: from the root of the repository.
        studies: what must have been run.
        blocks: what fills each block; a block ``made`` says what the page was made with.
    """

    path: str
    studies: tuple[Study, ...]
    blocks: Mapping[str, Block]


ARENA = Page(
    "docs/results/arena.md",
    (EACH, KNOWN),
    {
        "by-dataset": lambda measured: compare.by_dataset(measured, EACH),
        "places": lambda measured: compare.places(measured, EACH, "places"),
        "losses": lambda measured: compare.losses(measured, EACH),
        "boosting": lambda measured: compare.paired(measured, EACH, "boosting"),
        "places-of-known": lambda measured: compare.places(measured, KNOWN, "places_of_known"),
        "losses-to-known": lambda measured: compare.losses(measured, KNOWN),
    },
)
FIVE_NETS = Page(
    "docs/results/five-nets.md",
    (MANY,),
    {
        "places": lambda measured: compare.places(measured, MANY, "places_of_many"),
        "losses": lambda measured: compare.losses(measured, MANY),
    },
)
README = Page(
    "README.md",
    (EACH, KNOWN),
    {
        "reaches": lambda measured: default.reaches(measured, EACH),
        "standing": lambda measured: compare.readme_standing(measured, EACH, KNOWN),
    },
)
THEORY = Page(
    "docs/theory.md",
    (EACH, OTHER_LEVELS, *UNLIKE.values()),
    {
        "reaches": lambda measured: default.reaches(measured, EACH),
        "levels": lambda measured: default.other_levels(measured, OTHER_LEVELS),
        "unlike": lambda measured: default.unlike_nodes(measured, EACH, UNLIKE),
    },
)
CORRECTED = Page(
    "docs/results/main.md",
    (MAIN, HEADLINE, LAMBDA, SHARPNESS, ERRORS, RESOURCES),
    {
        "main": paper.section(
            MAIN, pictures.models, "Coverage and relative width of every model on every data set"
        ),
        "headline": paper.section(HEADLINE, reading=paper.headline_gain),
        "lambda": paper.section(
            LAMBDA, draw, "The λ found on each data set", paper.best_lambdas_found
        ),
        "supplement": paper.tables(SHARPNESS, ERRORS, RESOURCES),
    },
)
OTHERS = Page(
    "docs/results/others.md",
    (
        *(ROBUSTNESS, SPLITS, SHIFT, LEVELS, RQR_LOSS, CURVE, ABLATION, SCATTER, NODES, WALKS),
        *(BANDS, BANDS_REAL, SIZES),
    ),
    {
        "robustness": paper.section(
            ROBUSTNESS,
            pictures.damage,
            "Coverage and width against the strength of damage",
            paper.coverage_ranges,
        ),
        "splits": paper.section(
            SPLITS,
            pictures.conditions,
            "Coverage and width under three kinds of split",
            paper.split_losses,
        ),
        "shift": paper.section(
            SHIFT,
            pictures.matrix,
            "Coverage and width by the graph fitted on and the graph judged",
            paper.shift_losses,
        ),
        "levels": paper.section(
            LEVELS,
            pictures.levels,
            "Coverage attained minus wanted at three levels",
            paper.level_gaps,
        ),
        "rqr-loss": paper.section(
            RQR_LOSS,
            pictures.models,
            "Coverage and relative width with RQR's loss and with QpiGNN's own",
            paper.coverage_ranges,
        ),
        "lambda-curve": paper.section(
            CURVE, draw, "Coverage and width against λ", paper.lambda_and_theory, table=False
        ),
        "ablation": paper.section(
            SCATTER,
            pictures.models,
            "Coverage and relative width of every variant",
            paper.coverage_ranges,
            table=False,
        ),
        "ablation-table": paper.tables(ABLATION),
        "nodes": paper.section(
            NODES, draw, "Error of coverage against the number of nodes", paper.error_slope
        ),
        "walks": paper.section(
            WALKS, draw, "Paths of training through coverage, width and loss", table=False
        ),
        "bands": paper.section(
            BANDS, draw, "Intervals of test nodes on the synthetic data sets", table=False
        ),
        "bands-real": paper.section(
            BANDS_REAL, draw, "Intervals of test nodes on the real data sets", table=False
        ),
        "sizes": paper.tables(SIZES),
    },
)
PUBLISHED = Page(
    "docs/results/published.md",
    (OLD_MAIN, OLD_ROBUSTNESS, OLD_SHIFT, OLD_CURVE, OLD_ABLATION, OLD_SIZES),
    {
        "main": paper.section(
            OLD_MAIN, pictures.beside_paper, "Our figures against the paper's", table=False
        ),
        "agreement": beside.agreement_table(OLD_MAIN),
        "coverage": beside.beside_paper_table(OLD_MAIN, "picp"),
        "width": beside.beside_paper_table(OLD_MAIN, "mpiw"),
        "far": beside.far_from_paper(OLD_MAIN),
        "robustness": paper.section(
            OLD_ROBUSTNESS,
            pictures.damage,
            "Coverage and width against the strength of damage",
            beside.near_paper,
        ),
        "shift": paper.section(
            OLD_SHIFT,
            pictures.matrix,
            "Coverage and width by the graph fitted on and the graph judged",
            beside.near_paper,
        ),
        "lambda-curve": paper.section(
            OLD_CURVE, draw, "Coverage and width against λ", paper.lambda_cliff, table=False
        ),
        "ablation": paper.section(
            OLD_ABLATION,
            pictures.models,
            "Coverage and width of every variant",
            beside.near_paper,
        ),
        "sizes": paper.section(OLD_SIZES, reading=beside.near_paper),
    },
)
INDEX = Page(
    "docs/results/index.md",
    (EACH, KNOWN, HEADLINE, LAMBDA, SPLITS, SHIFT, OLD_MAIN),
    {
        "overall": lambda measured: compare.overall(measured, EACH),
        "standing": lambda measured: paragraphs(
            compare.standing(measured, EACH, KNOWN),
            default.reading_of_default(measured.rows(EACH)),
        ),
        "corrected": paper.sentences(
            (HEADLINE, paper.headline_gain, "[headline](main.md)"),
            (LAMBDA, paper.best_lambdas_found, "[best λ](main.md)"),
            (SPLITS, paper.split_losses, "[splits](others.md)"),
            (SHIFT, paper.shift_losses, "[shift](others.md)"),
        ),
        "published": beside.agreement_table(OLD_MAIN),
    },
)
PAGES = (ARENA, README, THEORY, CORRECTED, OTHERS, PUBLISHED, FIVE_NETS, INDEX)
"""In the order in which they are made: the comparison of all methods first."""
