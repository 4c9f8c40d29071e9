"""The structural shift, drawn: a line for each graph trained on."""

from dataclasses import replace

from qpignn.paper.entries import structural_shift

SPEC = replace(
    structural_shift.SPEC,
    title="Structural shift as radar plots",
    place="5.2 figure, structural shift",
    picture="radar",
)
