import pytest

from qpignn.errors import UnknownNameError, check_choice, quoted


def test_check_choice_unknown_name_suggests_similar_ones() -> None:
    with pytest.raises(
        UnknownNameError, match=r"unknown data set 'chamelon': did you mean chameleon"
    ):
        check_choice("data set", "chamelon", ["basic", "chameleon"])


def test_check_choice_dissimilar_name_lists_all() -> None:
    with pytest.raises(UnknownNameError, match=r"'zzz': known are basic, chameleon"):
        check_choice("data set", "zzz", ["basic", "chameleon"])


def test_long_lists_are_cut_and_counted() -> None:
    assert quoted(range(7), most=3) == "0, 1, 2 and 4 more"
    assert quoted("ab") == "'a', 'b'"
