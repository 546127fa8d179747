"""A plan and a table of trials to comparisons: effect, interval, p and every caveat of one variant on one metric."""
