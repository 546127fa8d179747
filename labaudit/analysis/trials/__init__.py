"""A run folder's trial files to rows, a columnar table, and the derived `trials.parquet`."""
