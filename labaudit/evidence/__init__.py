"""Turns what a trial left behind (hook streams, traces, control acknowledgements) into validated evidence records.

The order in which a runner calls this package, one attempt at a time::

    # before the start
    recorder = Recorder(EventLog(...), run.artifacts, redactor)            # recorder
    control  = ControlPlane(host_state / "lab_control.json", trial.control_log, clock)
    control.write("continue")                                              # labaudit.harnesses.control_plane
    receiver = OtlpReceiver.start(spool_folder, socket=path, redactor=...) # otlp.receiver; only for tracing by otlp

    # after the end
    received: ReceivedSpans = receiver.close()
    found: Harvest = harvest(HarvestOrder(out, ids, strict, ...), trial, recorder, clock)          # harvest
    write state_inventory.json with ext = SandboxFacts(engine, end_cause, unenforced, ...).as_ext()  # trial_facts
    recorder.references  -> artifacts.jsonl;   recorder.log.seal(trial.events_head)
    observed: ObservedTrial = observe_trial(trial, resolved, TrialFacts(ids, attempt, digest, status, outcome))
                                                                           # observe; then grading.grades.grade_trial

A verifier has only the stored files: `observe_trial(trial, resolved, TrialFacts.from_record(trial_record))`.

`observed.manifest.hard_failure` and `observed.hooks.fails_trial` say when the trial itself has failed by the rules of
its profile; everything else is a matter of grades.
"""
