from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from qpignn.cli import app
from qpignn.cli.options import described, descriptions
from qpignn.data.column_roles import ColumnRoles

COMMANDS: dict[str, Any] = {**typer.main.get_command(app).commands}  # type: ignore[attr-defined]
COMMANDS |= {f"paper {name}": one for name, one in COMMANDS.pop("paper").commands.items()}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_has_help(name: str) -> None:
    assert [one.name for one in COMMANDS[name].params if not one.help] == []


def test_descriptions_of_several_lines_are_joined() -> None:
    text = """Do it.

    Example: do a

    Args:
        one: The first: a number,
            or a word.
        two: The second.

    Raises:
        ValueError: never.
    """
    assert descriptions(text) == {
        "one": "The first: a number, or a word.",
        "two": "The second.",
        "ValueError": "never.",
    }


def test_described_command_has_options_flags_arguments_and_roles() -> None:
    given: dict[str, Any] = {}

    def command(
        place: Annotated[Path, typer.Argument()],
        split: str,
        very_fast: bool = False,
        form: Annotated[str, typer.Option("--format")] = "md",
        *,
        roles: ColumnRoles,
    ) -> None:
        """Do it.

        Args:
            place: Where.
            split: How to split.
            very_fast: Quickly.
            form: As what.
            roles: Of columns.
        """
        given.update(place=place, split=split, very_fast=very_fast, form=form, roles=roles)

    small = typer.Typer()
    small.command()(described(command))
    arguments = ["here", "--split", "age", "--very-fast", "--features", "a, b", "--directed"]
    done = CliRunner().invoke(small, arguments)
    assert done.exit_code == 0, done.output
    assert given == {
        **{"place": Path("here"), "split": "age", "very_fast": True, "form": "md"},
        "roles": ColumnRoles(features=("a", "b"), directed=True),
    }
    shown = CliRunner().invoke(small, ["--help"], env={"COLUMNS": "120"}).output
    assert "--format" in shown
    assert "How to split." in shown
    assert "--no-very-fast" not in shown
