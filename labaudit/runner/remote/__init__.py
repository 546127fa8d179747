"""Trials on workers elsewhere: what is sent, what a worker signs for, and what the coordinator checks before it counts.

    parts      a run's plan, dataset and sources as one value that is sent to each worker once
    worker     one trial on a worker: executed by the same code as here, packed, and signed for
    receipt    the worker's signature over what it hands over
    ingest     a package from a worker, hashed again and checked, to a trial of the run
    cluster    a connection to Dask, with the rules that this project needs
    description  who took part, as `executor.json`
    executor   `DaskExecutor`: windows of trials, lost workers as lost attempts
    objects    artifacts in a bucket or any other place that fsspec reaches

A worker's word about its own sandbox is its word: the coordinator checks digests, chains and signatures, not walls.
"""
