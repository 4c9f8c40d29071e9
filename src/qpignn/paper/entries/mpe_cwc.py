"""Supplementary metrics: error of the middle, and the coverage width criterion."""

from dataclasses import replace

from qpignn.paper.entries import main

SPEC = replace(
    main.SPEC,
    title="Mean prediction error (MPE) and coverage width criterion (CWC)",
    place="appendix J, MPE and CWC",
    metrics=("mpe", "cwc"),
    note="",
)
