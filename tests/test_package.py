import importlib
import subprocess
import sys

import pytest

import qpignn


@pytest.mark.parametrize("name", qpignn.__all__)
def test_public_names_exist_and_are_documented(name: str) -> None:
    assert getattr(qpignn, name).__doc__
    assert name in dir(qpignn)


def test_unknown_names_raise_as_usual() -> None:
    with pytest.raises(AttributeError, match="attribute Foo"):
        qpignn.Foo  # noqa: B018


def test_import_and_help_do_not_load_torch() -> None:
    code = "import sys, qpignn, qpignn.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert importlib.import_module("qpignn.__main__").main is not None
