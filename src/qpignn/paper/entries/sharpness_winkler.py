"""Supplementary metrics: sharpness and Winkler score."""

from dataclasses import replace

from qpignn.paper.entries import main

SPEC = replace(
    main.SPEC,
    title="Sharpness and Winkler score",
    place="appendix J, sharpness and Winkler score",
    metrics=("sharpness", "winkler"),
    note="Under the published protocol a unit missed counts once, as in the published code; "
    "otherwise 2/α times, which makes the score proper.",
)
