"""Raw p-values of one family to adjusted ones: Holm (family-wise error), Benjamini-Hochberg (false discovery rate).

The family is what the plan promised, not what could be computed: a comparison without a p-value (None) still counts
towards the size of its family and stays None, so that a missing result never makes the others look better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from labaudit.errors import BadInput


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment."""
    order, size = _known_order(p_values), len(p_values)
    adjusted: list[float | None] = [None] * size
    highest = 0.0
    for rank, position in enumerate(order):
        highest = max(highest, min(1.0, (size - rank) * _p(p_values, position)))
        adjusted[position] = highest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Benjamini and Hochberg's step-up adjustment."""
    order, size = _known_order(p_values), len(p_values)
    adjusted: list[float | None] = [None] * size
    lowest = 1.0
    for rank in range(len(order), 0, -1):
        position = order[rank - 1]
        lowest = min(lowest, size / rank * _p(p_values, position))
        adjusted[position] = lowest
    return adjusted


def no_correction(p_values: Sequence[float | None]) -> list[float | None]:
    """The p-values as they are, for a plan that says `none`."""
    _known_order(p_values)
    return list(p_values)


CORRECTIONS: dict[str, Callable[[Sequence[float | None]], list[float | None]]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
    "none": no_correction,
}


def adjust(p_values: Sequence[float | None], method: str) -> list[float | None]:
    """The adjusted p-values of one family by the named method."""
    if method not in CORRECTIONS:
        raise BadInput(
            f"unknown correction {method!r}; known: {', '.join(sorted(CORRECTIONS))}",
            where="analysis_plan.correction",
        )
    return CORRECTIONS[method](p_values)


def _known_order(p_values: Sequence[float | None]) -> list[int]:
    known = [position for position, p in enumerate(p_values) if p is not None]
    for position in known:
        if not 0.0 <= _p(p_values, position) <= 1.0:
            raise BadInput(f"{p_values[position]} is no p-value")
    return sorted(known, key=lambda position: _p(p_values, position))


def _p(p_values: Sequence[float | None], position: int) -> float:
    value = p_values[position]
    if value is None:
        raise BadInput("a missing p-value has no place in the order")
    return value
