"""A run's folder to its files: every path name of a run is written here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from labaudit.core.ids import safe_name
from labaudit.store.artifact_store import ArtifactStore


class TrialFolder:
    """The files of one trial."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trial_input = path / "trial_input.json"
        self.trial_output = path / "trial_output.json"
        self.metrics = path / "metrics.json"
        self.harness_manifest = path / "harness_manifest.json"
        self.harness_events = path / "harness_events.jsonl"
        self.events = path / "events.jsonl"
        self.events_head = path / "events.head"
        self.state_inventory = path / "state_inventory.json"
        self.network_events = path / "network_events.jsonl"
        self.trace_manifest = path / "trace_manifest.json"
        self.grades = path / "grades.json"
        self.run_record = path / "run_record.json"
        self.score_records = path / "score_records.jsonl"
        self.checkpoints = path / "checkpoints"
        self.stdout = path / "stdout.log"
        self.stderr = path / "stderr.log"
        self.artifacts = path / "artifacts.jsonl"
        self.control_log = path / "control.jsonl"
        self.boundaries = path / "sdk_boundaries.jsonl"
        self.trial_record = path / "trial_record.json"
        self.attempts = path / "attempts"
        self.a2a_packets = path / "a2a_packets.jsonl"
        self.a2a_events = path / "a2a_events.jsonl"
        self.acp_transcript = path / "acp_transcript.jsonl"
        self.receipt = path / "receipt.json"
        self.imported = path / "imported.json"

    @property
    def trial_id(self) -> str:
        """The trial's id, which is its folder's name."""
        return self.path.name

    def attempt(self, number: int) -> Path:
        """Where a lost or retried attempt is kept."""
        return self.attempts / str(number)

    def checkpoint(self, label: str) -> Path:
        """`checkpoints/checkpoint_<label>.json`."""
        return self.checkpoints / f"checkpoint_{safe_name(label)}.json"

    def files(self) -> Iterator[Path]:
        """Every regular file of the trial but `trial_record.json`, sorted by path."""
        for path in sorted(self.path.rglob("*")):
            if path != self.trial_record and path.is_file() and not path.is_symlink():
                yield path


class RunFolder:
    """The files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.resolved = path / "resolved_experiment.json"
        self.resolved_digest = path / "resolved_experiment.digest"
        self.variants = path / "variants"
        self.schedule = path / "schedule.jsonl"
        self.trials = path / "trials"
        self.artifacts_folder = path / "artifacts"
        self.artifact_list = path / "artifacts.jsonl"
        self.analysis = path / "analysis"
        self.summary = self.analysis / "summary.json"
        self.comparisons = self.analysis / "comparisons.json"
        self.paired_diffs = self.analysis / "paired_diffs.jsonl"
        self.paired_diffs_parquet = self.analysis / "paired_diffs.parquet"
        self.trials_table = self.analysis / "trials.parquet"
        self.exemplars = self.analysis / "exemplars.json"
        self.suspects = self.analysis / "suspects.json"
        self.diffs = self.analysis / "diffs"
        self.grades = path / "grades.json"
        self.inclusion = path / "inclusion.json"
        self.sbom = path / "sbom"
        self.import_report = path / "import_report.json"
        self.lineage = path / "lineage.json"
        self.divergence = path / "divergence.json"
        self.attestation = path / "attestation.json"
        self.manifest = path / "manifest.json"
        self.attestations = path / "attestations"
        self.checkpoint = self.attestations / "checkpoint"
        self.sums = self.attestations / "SHA256SUMS"
        self.artifacts = ArtifactStore(self.artifacts_folder)

    @property
    def run_id(self) -> str:
        """The folder's name; a renamed folder is still the run that its manifest names."""
        return self.path.name

    def variant(self, variant_id: str) -> Path:
        """`variants/<variant_id>.json`."""
        return self.variants / f"{variant_id}.json"

    def variant_diffs(self, variant_id: str) -> Path:
        """`analysis/diffs/<variant>.jsonl`."""
        return self.diffs / f"{variant_id}.jsonl"

    def trial(self, trial_id: str) -> TrialFolder:
        """The folder of one trial, whether it exists or not."""
        return TrialFolder(self.trials / trial_id)

    def trial_folders(self) -> Iterator[TrialFolder]:
        """The trials that have a folder, sorted by id."""
        if self.trials.is_dir():
            for path in sorted(self.trials.iterdir()):
                if path.is_dir() and not path.is_symlink():
                    yield TrialFolder(path)

    def bundle(self, kind: str) -> Path:
        """`attestations/<kind>.sigstore.json`."""
        return self.attestations / f"{kind}.sigstore.json"

    def proof(self, trial_id: str) -> Path:
        """`attestations/proofs/<trial_id>.tlog-proof`."""
        return self.attestations / "proofs" / f"{trial_id}.tlog-proof"

    @property
    def sealed(self) -> bool:
        """A run with a manifest is never changed again."""
        return self.manifest.is_file()

    @property
    def half_signed(self) -> bool:
        """Sealed, and its signing was begun (the plan's link comes first) and not ended (the sums come last)."""
        return self.sealed and any(self.attestations.glob("*.link")) and not self.sums.is_file()

    def run_level_files(self) -> Iterator[Path]:
        """Files that `manifest.json` lists: all but itself, trials/, artifacts/ and attestations/, sorted by path."""
        apart = {self.trials, self.artifacts_folder, self.attestations, self.manifest}
        for top in sorted(self.path.iterdir()):
            if top in apart:
                continue
            if top.is_file() and not top.is_symlink():
                yield top
            elif top.is_dir():
                yield from (path for path in sorted(top.rglob("*")) if path.is_file() and not path.is_symlink())
