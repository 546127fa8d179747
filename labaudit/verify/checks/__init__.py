"""The checks of a run, one file per subject. A check takes a RunView and yields findings; it decides nothing else."""
