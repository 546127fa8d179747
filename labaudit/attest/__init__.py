"""Evidence to signed claims that the ecosystem's own tools can check.

    keys, log_key, trust_store    who signs, and whom a lab trusts
    dsse, bundles, signers        bytes to envelopes to Sigstore bundles
    layout                        the four in-toto steps and their links
    checkpoint, proofs            the run tree's signed head, and one trial's way to it
    publication_log               a tlog-tiles log of what a lab has published
    run_reader                    the reading side of a finished run: records, counts, facts
    summary, manifest             attestation.json and manifest.json
    statements                    one builder per kind of claim, each a pure function of the facts
    seal                          all of it, in the order in which each part refers to the one before
    site_statement, session_seal  the same for a published site and for a recorded session
    sbom/                         what is inside the image and the harness
    bundle_zip                    a run folder as one file with the same bytes everywhere

A signature says who and unchanged. It does not say honest.
"""
