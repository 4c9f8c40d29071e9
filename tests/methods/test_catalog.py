import pytest

from qpignn import QpiGNN, make_method
from qpignn.errors import SettingError, UnknownNameError


def test_methods_by_name_in_both_forms() -> None:
    assert isinstance(make_method("qpignn", confidence_level=0.8), QpiGNN)
    assert make_method("qpignn", "published").get_params()["half_width"] == "sigmoid"


def test_make_method_unknown_names_or_settings_raise() -> None:
    with pytest.raises(UnknownNameError, match="unknown method 'qpi_gnn': did you mean qpignn"):
        make_method("qpi_gnn")
    with pytest.raises(
        UnknownNameError, match="unknown protocol 'correct': did you mean corrected"
    ):
        make_method("qpignn", "correct")
    with pytest.raises(SettingError, match="epochs: expected a whole number from 1 up, got 0"):
        make_method("qpignn", epochs=0)
    with pytest.raises(SettingError, match="method 'qpignn' has no setting 'width_lambda'"):
        make_method("qpignn", width_lambda=1)
