import pytest

from qpignn.errors import UnknownNameError, check_choice, quoted


def test_an_unknown_name_is_answered_with_the_nearest_ones() -> None:
    with pytest.raises(
        UnknownNameError, match=r"unknown data set 'chamelon': did you mean chameleon"
    ):
        check_choice("data set", "chamelon", ["basic", "chameleon"])


def test_a_name_like_no_other_gets_the_whole_list() -> None:
    with pytest.raises(UnknownNameError, match=r"'zzz': known are basic, chameleon"):
        check_choice("data set", "zzz", ["basic", "chameleon"])


def test_long_lists_are_cut_and_counted() -> None:
    assert quoted(range(7), most=3) == "0, 1, 2 and 4 more"
    assert quoted("ab") == "'a', 'b'"
