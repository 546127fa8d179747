"""Exemplars, suspects and aligned diffs: what may explain an effect, with its evidence source, and never as a cause."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from labaudit.analysis import analyse_run
from labaudit.analysis.explain.diff_builder import DiffBuilder
from labaudit.analysis.explain.trial_evidence import read_evidence
from labaudit.analysis.trials.rows import read_rows
from labaudit.core.canonical import canonical_bytes
from labaudit.errors import BadInput
from labaudit.store.run_folder import RunFolder
from tests.unit.analysis.made_up import Trial, binary_pairs, hook, tool_call, write_run


def suspects_of(folder: Path, trials: list[Trial], **options: Any) -> dict[str, dict[str, Any]]:
    found = analyse_run(write_run(folder, trials, **options)).suspects["suspects"]
    for one in found:
        assert one["evidence_source"] in ("framework_events", "hooks", "traces", "network_proxy", "imported")
        assert set(one["coverage"]) == {"covered", "total"}
        assert "association" in one["sentence"].lower()
        assert "cause" not in one["sentence"] or "says nothing about cause" in one["sentence"]
    return {one["id"]: one for one in found}


def pairs(count: int) -> list[Trial]:
    return binary_pairs([n % 2 for n in range(count)], [n % 3 % 2 for n in range(count)])


def test_without_evidence_every_check_says_so_instead_of_passing(tmp_path: Path) -> None:
    found = suspects_of(tmp_path, pairs(12))
    for name in ("budget_exhaustion", "proxy_blocks", "stop_observed", "steps", "tool_calls", "tokens_in"):
        assert found[name]["status"] == "insufficient_evidence"


def test_coverage_of_each_source_is_declared(tmp_path: Path) -> None:
    trials = pairs(6)
    trials[0] = replace(trials[0], hooks=[hook(0, "agent_step_start", step_index=0)])
    coverage = analyse_run(write_run(tmp_path, trials)).suspects["evidence_coverage"]
    assert coverage["hooks"] == {"covered": 1, "total": 12}
    assert coverage["network_proxy"] == {"covered": 0, "total": 12}


def test_an_arm_that_always_starts_later_is_flagged(tmp_path: Path) -> None:
    trials = [replace(trial, started=2 * n) for n, trial in enumerate(pairs(24))]
    assert suspects_of(tmp_path / "a", trials)["start_order"]["status"] == "flagged"
    mixed = [replace(trial, started=n ^ (n // 2 % 2)) for n, trial in enumerate(pairs(24))]
    assert suspects_of(tmp_path / "b", mixed)["start_order"]["status"] == "not_flagged"


def test_retries_in_one_arm_are_flagged(tmp_path: Path) -> None:
    trials = [replace(t, attempts=2 if t.variant == "drop" else 1) for t in pairs(20)]
    assert suspects_of(tmp_path, trials)["retries"]["status"] == "flagged"


def test_a_worker_that_ran_only_one_arm_is_flagged(tmp_path: Path) -> None:
    trials = [replace(t, origin="worker", worker=f"w-{t.variant}") for t in pairs(20)]
    found = suspects_of(tmp_path, trials)["worker"]
    assert (found["status"], found["value"]) == ("flagged", 2)


def test_an_undeclared_difference_of_the_sandbox_is_flagged_without_any_test(tmp_path: Path) -> None:
    def inventory(variant: str) -> dict[str, Any]:
        mode = "none" if variant == "base" else "full"
        return {"network": {"mode_effective": mode, "bypass_risk": "none"}, "sanitization_profile": "x"}

    trials = [replace(t, inventory=inventory(t.variant)) for t in pairs(4)]
    found = suspects_of(tmp_path, trials)
    assert found["undeclared_configuration:network.mode_effective"]["status"] == "flagged"
    assert "undeclared_configuration:sanitization_profile" not in found


def test_blocked_connections_in_one_arm_are_flagged(tmp_path: Path) -> None:
    def network(variant: str) -> list[dict[str, Any]]:
        decision = "block" if variant == "drop" else "allow"
        return [{"seq": 0, "decision": decision, "host": "api.example", "port": 443, "count": 3}]

    trials = [replace(t, network=network(t.variant)) for t in pairs(20)]
    assert suspects_of(tmp_path, trials)["proxy_blocks"]["status"] == "flagged"


def test_an_empty_proxy_log_counts_only_where_a_proxy_stood(tmp_path: Path) -> None:
    for mode, status in (("none", "insufficient_evidence"), ("allowlist_enforced", "not_flagged")):
        trials = [replace(t, network=[], inventory={"network": {"mode_effective": mode}}) for t in pairs(8)]
        assert suspects_of(tmp_path / mode, trials)["proxy_blocks"]["status"] == status


def test_what_another_tool_did_not_record_is_not_taken_as_nothing_happened(tmp_path: Path) -> None:
    trials = [replace(t, origin="imported", started=n) for n, t in enumerate(pairs(12))]
    found = suspects_of(tmp_path, trials)
    assert (found["retries"]["status"], found["worker"]["status"]) == ("insufficient_evidence",) * 2
    assert {found[name]["evidence_source"] for name in ("retries", "worker", "start_order", "duration_seconds")} == {
        "imported"
    }


def test_spent_budgets_in_one_arm_are_flagged_from_the_runners_own_exit_event(tmp_path: Path) -> None:
    run = write_run(tmp_path, pairs(20))
    for trial in pairs(20):
        spent = "budget max_steps=3 is spent" if trial.variant == "drop" else None
        payload = run.artifacts.put(canonical_bytes({"budget_spent": spent}), "application/json", durable=False)
        event = {"event_type": "harness.exited", "seq": 0, "payload_ref": payload}
        run.trial(trial.trial_id).events.write_bytes(canonical_bytes(event) + b"\n")
    found = {one["id"]: one for one in analyse_run(run).suspects["suspects"]}["budget_exhaustion"]
    assert (found["status"], found["value"], found["coverage"]["covered"]) == ("flagged", 1, 40)


def test_behaviour_that_moves_with_the_effect_is_an_association(tmp_path: Path) -> None:
    trials = [
        replace(t, hooks=[tool_call(n, "search") for n in range(2 + 3 * int((t.metrics or {})["success"]))])
        for t in pairs(30)
    ]
    found = suspects_of(tmp_path, trials)["tool_calls"]
    assert (found["status"], found["statistic"], found["value"]) == ("flagged", "spearman_rho", pytest.approx(1.0))
    assert found["coverage"] == {"covered": 30, "total": 30}


def test_p_values_of_suspects_are_corrected_as_one_family(tmp_path: Path) -> None:
    trials = [replace(trial, started=2 * n) for n, trial in enumerate(pairs(24))]
    found = [one for one in suspects_of(tmp_path, trials).values() if one["p"] is not None]
    smallest = min(found, key=lambda one: float(one["p"]))
    assert smallest["p_adjusted"] == pytest.approx(smallest["p"] * len(found))


def test_exemplars_are_the_worst_best_and_least_certain_with_ties_by_hash(tmp_path: Path) -> None:
    trials = [
        Trial(v, f"t{task}", repl, metrics={"success": value})
        for v, table in {
            "base": {0: (1, 1), 1: (1, 1), 2: (0, 0), 3: (1, 0), 4: (0, 0)},
            "drop": {0: (0, 0), 1: (0, 0), 2: (1, 1), 3: (0, 1), 4: (0, 0)},
        }.items()
        for task, values in table.items()
        for repl, value in enumerate(values)
    ]
    (group,) = analyse_run(write_run(tmp_path, trials, replications=2)).exemplars["groups"]
    chosen = {kind: [one["task_id"] for one in group["exemplars"] if one["kind"] == kind] for kind in
              ("worst", "best", "uncertain")}  # fmt: skip
    assert chosen == {
        "worst": sorted(["t0", "t1"], key=lambda task: sha256(task.encode()).hexdigest()),
        "best": ["t2"],
        "uncertain": ["t3"],
    }
    assert group["exemplars"][0]["pairs"][1] == {
        "repl_idx": 1,
        "baseline_trial": f"base.{chosen['worst'][0]}.r1",
        "variant_trial": f"drop.{chosen['worst'][0]}.r1",
    }


def test_lower_is_better_turns_worst_and_best_around(tmp_path: Path) -> None:
    metric = {"name": "success", "type": "binary", "direction": "lower", "source": "evaluator:exact"}
    (group,) = analyse_run(write_run(tmp_path, binary_pairs([0, 1], [1, 0]), metrics=(metric,))).exemplars["groups"]
    assert [(one["kind"], one["task_id"]) for one in group["exemplars"]] == [("worst", "t0000"), ("best", "t0001")]


def diffs(run: RunFolder) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run.variant_diffs("drop").read_bytes().splitlines()]


def two(tmp_path: Path, baseline: list[dict[str, Any]] | None, variant: list[dict[str, Any]] | None) -> dict[str, Any]:
    run = write_run(
        tmp_path,
        [
            Trial("base", "t0", metrics={"success": 1}, hooks=baseline),
            Trial("drop", "t0", metrics={"success": 0}, hooks=variant, outcome="failure"),
        ],
    )
    analyse_run(run)
    (line,) = diffs(run)
    return line


def steps(*tools: str) -> list[dict[str, Any]]:
    return [
        event
        for step, name in enumerate(tools)
        for event in (
            hook(2 * step, "agent_step_start", step_index=step),
            tool_call(2 * step + 1, name, step_index=step),
        )
    ]


def test_steps_are_aligned_so_that_an_inserted_one_does_not_shift_the_rest(tmp_path: Path) -> None:
    line = two(tmp_path, steps("open", "read", "write"), steps("open", "search", "read", "write"))
    sequence = line["sequence"]["diff"]
    assert (line["granularity"], sequence["matching"], sequence["changes_total"]) == ("step", 3, 1)
    assert sequence["first_divergence"] == {
        "kind": "only_in_variant", "baseline": [], "variant": [{"index": 1, "calls": ["tool:search:ok"]}],
    }  # fmt: skip
    assert line["tool_calls"]["diff"]["changed"] == {"search": {"baseline": 0, "variant": 1}}
    assert line["outcome"] == {"baseline": "success", "variant": "failure"}
    assert line["metrics"] == {"success": {"baseline": 1, "variant": 0}}


def test_without_step_events_turns_are_aligned(tmp_path: Path) -> None:
    def turn(seq: int, identity: str) -> dict[str, Any]:
        return hook(seq, "model_call_end", model={"identity": identity}, outcome={"status": "ok"})

    line = two(tmp_path, [turn(0, "m"), turn(1, "m")], [turn(0, "m"), tool_call(1, "x"), turn(2, "n")])
    assert line["granularity"] == "turn"
    assert line["sequence"]["diff"]["first_divergence"]["variant"][0]["calls"] == ["model:m:ok", "tool:x:ok"]
    assert line["model_calls"]["diff"]["changed"]["n"] == {"baseline": 0, "variant": 1}


def test_a_source_that_one_side_lacks_is_never_no_difference(tmp_path: Path) -> None:
    line = two(tmp_path, steps("open"), None)
    assert line["granularity"] == "output"
    assert line["sequence"] == {"evidence_source": "hooks", "baseline": "present", "variant": "absent", "diff": None}
    assert line["network"]["diff"] is None


def test_a_broken_hook_stream_is_unusable_and_nothing_of_it_is_counted(tmp_path: Path) -> None:
    line = two(tmp_path, steps("open"), [hook(3, "agent_step_start", step_index=0), hook(2, "error", message="x")])
    assert line["sequence"]["variant"] == "unusable: seq does not rise from line to line"
    assert line["tool_calls"]["diff"] is None


def test_artifacts_are_compared_by_role_and_event_payloads_left_out(tmp_path: Path) -> None:
    def artifacts(letter: str) -> list[dict[str, str]]:
        return [
            {"ref": f"artifact://sha256/{letter * 64}", "role": "output:answer.txt"},
            {"ref": "artifact://sha256/" + "c" * 64, "role": "output:same.txt"},
            {"ref": f"artifact://sha256/{letter}{'0' * 63}", "role": "event:trial.started"},
        ]

    made = [Trial(v, "t0", metrics={"success": 1}, artifacts=artifacts("ab"[v == "drop"])) for v in ("base", "drop")]
    run = write_run(tmp_path, made)
    analyse_run(run)
    (line,) = diffs(run)
    assert (line["artifacts"]["diff"]["same"], list(line["artifacts"]["diff"]["changed"])) == (1, ["output:answer.txt"])


def test_the_diff_builder_refuses_trials_of_another_task(tmp_path: Path) -> None:
    run = write_run(tmp_path, binary_pairs([1], [0]))
    rows = read_rows(run)
    evidence = [read_evidence(run.trial(row.trial_id), row) for row in rows]
    with pytest.raises(BadInput, match="belongs to task"):
        DiffBuilder.build("another", *evidence)


def otlp(*spans: tuple[str, int, int]) -> bytes:
    made = [{"name": name, "startTimeUnixNano": str(start), "status": {"code": code}} for name, start, code in spans]
    return canonical_bytes({"resourceSpans": [{"scopeSpans": [{"spans": made}]}]}) + b"\n"


def with_traces(run: RunFolder, trial_id: str, data: bytes, form: str = "otlp_json_lines") -> None:
    reference = run.artifacts.put(data, "application/jsonl", durable=False)
    manifest = {"traces": [{"path": "t", "format": form, "artifact_ref": reference}]}
    run.trial(trial_id).trace_manifest.write_bytes(canonical_bytes(manifest))


def test_trials_with_spans_and_no_hook_events_are_aligned_by_span(tmp_path: Path) -> None:
    run = write_run(tmp_path, binary_pairs([1], [0]))
    with_traces(run, "base.t0000.r0", otlp(("call", 20, 0), ("plan", 10, 0)))
    with_traces(run, "drop.t0000.r0", otlp(("plan", 5, 0), ("call", 7, 2), ("call", 9, 0)))
    analysis = analyse_run(run)
    (line,) = diffs(run)
    assert (line["granularity"], line["sequence"]["evidence_source"]) == ("turn", "traces")
    assert line["sequence"]["diff"]["first_divergence"]["variant"] == [{"index": 1, "calls": ["span:call:error"]}]
    assert line["spans"]["diff"]["changed"] == {"call": {"baseline": 1, "variant": 2}}
    assert analysis.suspects["evidence_coverage"]["traces"] == {"covered": 2, "total": 2}


def test_a_trace_file_of_another_form_or_a_damaged_one_is_unusable_with_the_reason(tmp_path: Path) -> None:
    run = write_run(tmp_path, binary_pairs([1], [0]))
    with_traces(run, "base.t0000.r0", b"x", form="zipkin")
    with_traces(run, "drop.t0000.r0", b"{")
    analyse_run(run)
    (line,) = diffs(run)
    assert line["spans"]["baseline"] == "unusable: a trace file of the form 'zipkin' is not read here"
    assert line["spans"]["variant"].startswith("unusable: is no JSON")
    assert line["spans"]["diff"] is None


def protobuf(*spans: tuple[str, int, int]) -> bytes:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for number, (name, start, code) in enumerate(spans, start=1):
        span = scope.spans.add(
            trace_id=bytes([1] * 16), span_id=bytes([number] * 8), name=name, start_time_unix_nano=start
        )
        span.status.code = code
    return bytes(request.SerializeToString())


def test_spans_in_protobuf_are_read_as_those_in_json(tmp_path: Path) -> None:
    base, drop = (("call", 20, 0), ("plan", 10, 0)), (("plan", 5, 0), ("call", 7, 2), ("call", 9, 0))
    lines = []
    for form, written in (("otlp_json_lines", otlp), ("otlp_proto", protobuf)):
        run = write_run(tmp_path / form, binary_pairs([1], [0]))
        with_traces(run, "base.t0000.r0", written(*base), form)
        with_traces(run, "drop.t0000.r0", written(*drop), form)
        analyse_run(run)
        lines += diffs(run)
    assert lines[0] == lines[1]
    assert lines[1]["spans"]["diff"]["changed"] == {"call": {"baseline": 1, "variant": 2}}


def test_damaged_protobuf_is_unusable_with_the_reason(tmp_path: Path) -> None:
    run = write_run(tmp_path, binary_pairs([1], [0]))
    with_traces(run, "base.t0000.r0", protobuf(("plan", 5, 0))[:-3], "otlp_proto")
    with_traces(run, "drop.t0000.r0", protobuf(("plan", 5, 0)), "otlp_proto")
    analyse_run(run)
    (line,) = diffs(run)
    assert line["spans"]["baseline"].startswith("unusable: ")
    assert (line["spans"]["variant"], line["spans"]["diff"]) == ("present", None)


def test_workspaces_are_compared_as_the_last_checkpoints_have_them(tmp_path: Path) -> None:
    run = write_run(tmp_path, binary_pairs([1], [0]))
    for trial_id, files in (
        ("base.t0000.r0", {"kept": "a", "changed": "b", "gone": "c"}),
        ("drop.t0000.r0", {"kept": "a", "changed": "x", "new": "d"}),
    ):
        for seq, entries in ((3, {}), (12, files)):
            tree = {"entries": [{"kind": "file", "path": path, "sha256": digest} for path, digest in entries.items()]}
            reference = run.artifacts.put(canonical_bytes(tree), "application/json", durable=False)
            checkpoint = {"event_seq": seq, "surfaces": [{"name": "workspace", "manifest_ref": reference}]}
            path = run.trial(trial_id).checkpoint(f"step-{seq}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(canonical_bytes(checkpoint))
    analyse_run(run)
    (line,) = diffs(run)
    assert line["workspace"]["diff"] == {
        "only_in_baseline": {"paths": ["gone"], "total": 1},
        "only_in_variant": {"paths": ["new"], "total": 1},
        "changed": {"paths": ["changed"], "total": 1},
    }
    assert line["state"] == {
        "evidence_source": "framework_events", "baseline": "absent", "variant": "absent", "diff": None,
    }  # fmt: skip
