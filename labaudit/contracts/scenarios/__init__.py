"""Scenarios: steps in order, data moved between them by `input_map`, a RunRecord and ScoreRecords out.

    data_flow    the grammar of references and targets      plan       a scenario to its transfers, or its problems
    executor     a task and a way to run a step to a record module     Runner, Evaluator, Module, and easy ways to them
    scoring      a run to scores by target                  clocks     time as a value
    hook_stream  a harness's events and control answers     harness    the program that runs modules in a sandbox

This package and `modules` beside it import the standard library and each other, relatively. So both folders can be
copied into a harness's source, where `harness` runs them in the sandbox: see docs/module-guide.md.
"""
