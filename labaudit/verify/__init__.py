"""A run, a bundle, a site, a session or one trial's proof to a verdict that anyone can reproduce.

    sources, zip_*               a folder or a bundle as bounded, read-only bytes
    run_view                     what the checks of a run share, read lazily, so that their order decides nothing
    checks/                      one file per subject; each check is a small function that yields findings
    signatures, keyless          who signed, and does the caller trust them
    grades_check                 every trial and the run graded again from stored files
    seen, published_log          consistency with a checkpoint that the caller kept
    policy, policy_check         what a pipeline demands beyond being intact
    run_steps                    the numbered list of checks
    verify_run, verify_bundle, verify_proof, verify_site, verify_session, targets
    request, trust               what the caller asks, and whom the caller trusts
    verdict, reasons, render     findings to one of verified, failed, malformed, policy_unmet, and to words
    vsa                          the verdict as a signed summary

It never writes into a target, follows no link, runs nothing that it finds, and trusts no key that the target brings.
"""
