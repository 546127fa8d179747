"""Spans that a harness exports, over HTTP or in files, to lines of OTLP/JSON that can be read, counted and redacted."""
