"""Observed evidence to the five grades, each a pure function, each cap with its rule, evidence and sentence.

A grade starts at the top of its scale and every rule that applies holds it down; the lowest cap wins. So a grade is
never higher than the weakest thing that was observed, and what was not observed never lifts one.
"""
