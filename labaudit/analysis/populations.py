"""Made-up populations of tasks whose true effect is known, for simulating how intervals behave.

Tasks differ (some are easy, some are hard) and so does what the variant does to them; replicates vary around their
task. The effect that an interval should hold is that on tasks like these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int, int], tuple[Cells, Cells]]


@dataclass(frozen=True)
class Population:
    """`draw(stream, sets, tasks, replicates)` gives cells of variant and baseline, one set of tasks per row."""

    name: str
    type: Literal["binary", "continuous"]
    effect: Literal["risk_diff", "mean_diff", "median_diff", "log_ratio"]
    draw: Draw
    truth: Callable[[int], float]


def _successes(centre: float, shift: float) -> Draw:
    """Success with a probability of the task's own, logistic around `centre`, moved by `shift` in the variant."""

    def draw(stream: np.random.Generator, sets: int, tasks: int, replicates: int) -> tuple[Cells, Cells]:
        baseline = centre + 1.5 * stream.standard_normal((sets, tasks, 1))
        variant = baseline + shift + 0.5 * stream.standard_normal((sets, tasks, 1))
        shape = (sets, tasks, replicates)
        return (
            (stream.random(shape) < _logistic(variant)).astype(np.float64),
            (stream.random(shape) < _logistic(baseline)).astype(np.float64),
        )

    return draw


def _risk_difference(centre: float, shift: float) -> Callable[[int], float]:
    def truth(replicates: int) -> float:
        return _mean_logistic(centre + shift, math.hypot(1.5, 0.5)) - _mean_logistic(centre, 1.5)

    return truth


@lru_cache(maxsize=64)
def _mean_logistic(centre: float, spread: float) -> float:
    """The mean of the logistic function of a normal variable, by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    return float(np.dot(weights, _logistic(centre + spread * nodes)) / math.sqrt(2 * math.pi))


def _logistic(values: Cells) -> Cells:
    found: Cells = 1.0 / (1.0 + np.exp(-values))
    return found


def _costs(stream: np.random.Generator, sets: int, tasks: int, replicates: int) -> tuple[Cells, Cells]:
    """Log-normal between tasks and within: a long right tail, as cost, tokens and latency have."""
    task = stream.standard_normal((sets, tasks, 1))
    change = 0.2 + 0.3 * stream.standard_normal((sets, tasks, 1))
    noise = 0.5 * stream.standard_normal((2, sets, tasks, replicates))
    return np.exp(task + change + noise[0]), np.exp(task + noise[1])


def _cost_mean_difference(replicates: int) -> float:
    return math.exp(0.5 + 0.125) * (math.exp(0.2 + 0.045) - 1)


@lru_cache(maxsize=64)
def _cost_median_difference(replicates: int) -> float:
    """The median of task differences depends on the replicates behind each mean; two million tasks give it."""
    stream = np.random.Generator(np.random.PCG64([20261118, replicates]))
    variant, baseline = _costs(stream, 1, 2_000_000, replicates)
    return float(np.median(variant.mean(axis=2) - baseline.mean(axis=2)))


def _scores(stream: np.random.Generator, sets: int, tasks: int, replicates: int) -> tuple[Cells, Cells]:
    """Scores that are normal around their task."""
    task = stream.standard_normal((sets, tasks, 1))
    change = 0.1 + 0.3 * stream.standard_normal((sets, tasks, 1))
    noise = 0.5 * stream.standard_normal((2, sets, tasks, replicates))
    return task + change + noise[0], task + noise[1]


POPULATIONS: tuple[Population, ...] = (
    Population("success, middling tasks", "binary", "risk_diff", _successes(0.3, 0.4), _risk_difference(0.3, 0.4)),
    Population("success, easy tasks", "binary", "risk_diff", _successes(2.0, 0.5), _risk_difference(2.0, 0.5)),
    Population("score, normal", "continuous", "mean_diff", _scores, lambda replicates: 0.1),
    Population("cost, log-normal", "continuous", "mean_diff", _costs, _cost_mean_difference),
    Population("cost, log-normal", "continuous", "log_ratio", _costs, lambda replicates: 0.2),
    Population("cost, log-normal", "continuous", "median_diff", _costs, _cost_median_difference),
)
