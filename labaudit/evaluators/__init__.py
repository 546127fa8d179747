"""A trial's output and its task to measured values, outside the harness's reach.

Evaluators run after the trial has ended, on what was collected from `/out`. A value that cannot be had is missing with
its cause, never zero.
"""
