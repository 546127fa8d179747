"""The words of the pages, each in a sentence that claims no more than what is checked."""

from __future__ import annotations

WORDS: tuple[tuple[str, str], ...] = (
    ("artifact", "Bytes that a trial produced or read, stored under their own SHA-256."),
    ("attestation", "A signed statement about a run. It proves who said so and that nothing changed since; no more."),
    ("attempt", "One try at a trial. Only an attempt that the infrastructure lost is tried again, and both are kept."),
    ("baseline", "The arm that every other variant is compared with."),
    ("cap", "A rule that holds a grade down, with the evidence that it read."),
    ("checkpoint", "The signed head of the run tree: its size and its root."),
    ("chain", "Each event holds the hash of the event before it, so that none can be changed or left out unseen."),
    ("control_ack", "The harness's answer at the end of a step, by which the step's boundary is established."),
    (
        "evidence source",
        "Who saw something: framework, hooks of the harness, traces, SDK, proxy, or another tool.",
    ),
    ("exemplar", "A task worth reading first: where the variant was worst, best or least sure."),
    ("grade", "How far the evidence supports a property; recomputed by anyone who verifies the run."),
    ("harness", "The program under test with all that drives it."),
    ("hook stream", "Events that the harness writes about itself: steps, model calls, tool calls."),
    ("integration level", "How closely the harness could be watched. The observed level counts, not the promised one."),
    ("interval", "A confidence interval over tasks: how far the effect could lie for tasks like these."),
    ("lost", "Scheduled, and ended without a result because the infrastructure failed. Counted and shown."),
    ("manifest", "The list of a run's files by digest; the one thing that is signed."),
    ("minimal detectable effect", "The smallest true effect that an experiment of this size sees four times in five."),
    ("missing", "A value that is not there, with its cause: missing, error, absent, invalid or not a number."),
    ("not observed", "There was no evidence to grade. It is below every grade and is never counted as a pass."),
    ("paired", "Both arms ran the same task and replicate, so that their difference is the task's own."),
    ("payload", "What an event carries, stored as an artifact and already redacted."),
    ("redacted", "Replaced before it was stored, by a hash or by nothing, by a rule of the plan."),
    ("replicate", "One repetition of a task in one arm."),
    ("resolved digest", "The digest of the whole plan, registered and signed before the first trial."),
    (
        "run tree",
        "An RFC 6962 tree over the records of all scheduled trials; its root stands for them all.",
    ),
    ("suspect", "An association in the evidence that could explain a difference. It establishes no cause."),
    ("trial", "One task, one variant, one replicate, run once in a sandbox of its own."),
    ("variant", "One arm of the experiment: the plan with some settings changed."),
    ("withheld", "Kept back by the publisher and shown by its digest, so that it can be compared later."),
)
