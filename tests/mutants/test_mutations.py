"""The changes that ``make mutants`` makes, listed by hand for a few lines."""

from __future__ import annotations

from mutations import mutants

SOURCE = '''
"""A module."""
FEW: int = 3

def pick(a: float, b: float = 1.5) -> float:
    """Text."""
    if a < b and not b:
        raise ValueError(f"words {a - b}")
    return max(a, b)
'''


def test_mutants_has_every_kind_of_change_and_no_other() -> None:
    changes = [(mutant.line, mutant.where, mutant.change) for mutant in mutants(SOURCE, "there.py")]
    test = "a < b and (not b)"
    raising = "raise ValueError(f'words {a - b}')"
    assert changes == [
        (3, "module", "3  →  4"),
        (5, "pick", "1.5  →  2.5"),
        (7, "pick", f"if {test}: {raising}  →  if not ({test}): {raising}"),
        (7, "pick", f"{test}  →  a < b or not b"),
        (7, "pick", "a < b  →  a <= b"),
        (7, "pick", "a < b  →  a >= b"),
        (7, "pick", "not b  →  b"),
        (8, "pick", f"{raising}  →  pass"),
        (9, "pick", "return max(a, b)  →  return None"),
        (9, "pick", "max(a, b)  →  max(b)"),
        (9, "pick", "max(a, b)  →  max(a)"),
        (9, "pick", "max(a, b)  →  min(a, b)"),
    ]


def test_mutant_code_has_its_one_change() -> None:
    results = []
    for mutant in mutants("def f(a, b):\n    return a - b + b\n", "there.py"):
        names: dict[str, object] = {}
        exec(mutant.code, names)
        results.append((mutant.change, names["f"](5, 2)))  # type: ignore[operator]
    assert results == [
        ("return a - b + b  →  return None", None),
        ("a - b + b  →  a - b - b", 1),
        ("a - b  →  a + b", 9),
    ]


def test_mutants_numbers_equal_changes_of_a_function() -> None:
    changes = [str(mutant) for mutant in mutants("def f(a):\n    return a[2] + a[2]\n", "there.py")]
    assert [one for one in changes if "2  →  3" in one] == ["f: 2  →  3", "f: 2  →  3  #2"]
