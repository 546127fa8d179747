"""Arrays of numbers to estimates, intervals and p-values: no files, no clock, randomness only from a given seed."""
