"""What can end a trial that uses the SDK, each with the word that trial_output.json carries."""

from __future__ import annotations


class SdkError(Exception):
    """Base of all."""

    error_type = "sdk_error"


class StopRequested(SdkError):
    """A step was started after a stop was acknowledged."""

    error_type = "stop_requested"


class BoundaryError(SdkError):
    """A wrapped call failed. The same class is raised when it is recorded and when it is replayed."""

    error_type = "boundary_error"

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


class NotRecordable(SdkError):
    """A request or response has no JSON form, so no boundary can be recorded; the call is not made or not returned."""

    error_type = "not_recordable"


class ReplayDivergence(SdkError):
    """A replay met another boundary than the recorded one. Nothing was called; the trial fails closed."""

    error_type = "replay_divergence"

    def __init__(self, index: int, what: str, expected: object = None, observed: object = None) -> None:
        super().__init__(f"boundary {index}: {what}")
        self.index = index
        self.what = what
        self.expected = expected
        self.observed = observed
