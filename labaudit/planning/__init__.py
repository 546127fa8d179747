"""An authored experiment.yaml to a resolved spec with a digest, its variants and the schedule of trials.

Everything a run depends on is fixed here, before the first trial: dataset bytes, image id, harness digests, analysis
plan. Image and harness are looked up through functions handed in, so nothing in this package touches an engine.
"""
