"""Results that another tool made to a run folder that is graded, analysed and sealed like any other, and labelled so.

    protocol        what a reader is, and its options        readers       format name to reader
    results         foreign rows, claims and findings        source_files  the files that were read, each hashed
    foreign_json    lenient, bounded JSON                    eval_zip      bounded zip entries, zstd included
    terminal_bench  inspect_log  harbor  swebench  table     one file per format, with its parts beside it
    duplicates      rows to one row per trial                totals        published figures against the rows
    plan            rows to a resolved experiment            trial_files   a row to the files of a trial
    import_run      all of it, in order                      every_eval_ever   a run to Every Eval Ever JSON

Nothing that a file claims is taken over unseen: totals are counted again from rows, a null is missing with its cause,
and what was not observed here is graded so.
"""
