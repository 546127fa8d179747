"""One record per file of a run: the code's view of what `schemas/` says.

The schema is normative; the record is the same shape as a frozen, strict pydantic class, so that code reads
`record.ids.trial_id` and a typo is a type error. A test feeds the same documents to both and demands one answer.

    base               what all records share: from_bytes, from_json, to_json
    fields             digests, references, times, enumerations as annotated types
    experiment         experiment.yaml as its author wrote it
    resolved           the resolved form of it, whose digest names a run
    schema_registry    documents to findings, by schema
    document_rules     the numbered rules that a schema cannot say
"""
