"""A run, a baseline and a variant to all that is known about the two: estimates, pairs, exemplars, suspects, diffs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labaudit.analysis.effects.plan import settings_of
from labaudit.analysis.paired_rows import paired_lines
from labaudit.analysis.runner import Analysis, AnalysisRunner, read_resolved
from labaudit.core.strict_json import parse_json
from labaudit.errors import BadInput
from labaudit.records.comparisons import Comparison
from labaudit.store.run_folder import RunFolder


@dataclass(frozen=True)
class PairBundle:
    """Two arms of one run. `planned` says whether the signed plan compares them; if not, there are no p-values."""

    run_id: str
    baseline: str
    variant: str
    planned: bool
    comparisons: Sequence[Comparison]
    pairs: bytes
    exemplars: Mapping[str, Any]
    suspects: Mapping[str, Any]
    diffs: Sequence[bytes]

    def as_json(self) -> dict[str, Any]:
        """All of it as one document."""
        return {
            "schema_version": "pair_bundle_v1",
            "run_id": self.run_id,
            "baseline": self.baseline,
            "variant": self.variant,
            "planned": self.planned,
            "comparisons": [one.to_json() for one in self.comparisons],
            "paired_diffs": [parse_json(line) for line in self.pairs.splitlines()],
            "exemplars": dict(self.exemplars),
            "suspects": dict(self.suspects),
            "diffs": [parse_json(line) for line in self.diffs],
        }


def read_pair(run: RunFolder, baseline: str | None, variant: str | None, *, processes: int = 1) -> PairBundle:
    """The bundle, recomputed from the trial files; names that are left out are the plan's if it leaves no choice."""
    settings = settings_of(read_resolved(run)[0])
    known = (settings.baseline, *settings.variants)
    chosen_baseline = _known(baseline or settings.baseline, known)
    chosen = _known(variant or _only_other(known, chosen_baseline), known)
    if chosen == chosen_baseline:
        raise BadInput(f"{chosen!r} is both baseline and variant", hint=f"known: {', '.join(known)}")
    planned = chosen_baseline == settings.baseline
    off_plan = None if planned else (chosen_baseline, chosen)
    analysis = AnalysisRunner(run, processes=processes, off_plan=off_plan).run()
    return _bundle(analysis, chosen_baseline, chosen, planned)


def _bundle(analysis: Analysis, baseline: str, variant: str, planned: bool) -> PairBundle:
    exemplars, suspects = analysis.exemplars, analysis.suspects
    return PairBundle(
        run_id=analysis.comparisons.run_id,
        baseline=baseline,
        variant=variant,
        planned=planned,
        comparisons=[one for one in analysis.comparisons.comparisons if one.variant == variant],
        pairs=b"".join(paired_lines(analysis.compared, variant)),
        exemplars={**exemplars, "groups": [one for one in exemplars["groups"] if one["variant"] == variant]},
        suspects={**suspects, "suspects": [one for one in suspects["suspects"] if one["variant"] == variant]},
        diffs=analysis.evidence.diff_lines.get(variant, []),
    )


def _known(name: str, known: Sequence[str]) -> str:
    if name not in known:
        raise BadInput(f"the run has no variant {name!r}", hint=f"known: {', '.join(known)}")
    return name


def _only_other(known: Sequence[str], baseline: str) -> str:
    others = [name for name in known if name != baseline]
    if len(others) != 1:
        told = "the run has no variant besides its baseline" if not others else "the run has several variants"
        raise BadInput(told, hint=f"name one with --variant; known: {', '.join(known)}")
    return others[0]
