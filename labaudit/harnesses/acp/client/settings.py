"""Mode and model: what was asked, by which method, and what the agent said it is afterwards.

An agent that answers `{}` accepted a request; only its own later word (an option's current value, a mode update)
confirms it. The two are kept apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from labaudit.harnesses.acp.wire.text import object_at, text_at
from labaudit.harnesses.acp.wire.updates import ConfigOption, ModeNow, OptionsNow, read_options

SettingName = Literal["mode", "model"]


@dataclass
class Setting:
    """One request for a mode or a model."""

    asked: str
    via: str = ""
    accepted: bool = False
    confirmed: str | None = None
    error: str = ""

    def as_json(self) -> dict[str, object]:
        """For records."""
        fields: dict[str, object] = {"asked": self.asked, "accepted": self.accepted, "confirmed": self.confirmed}
        if self.via:
            fields["via"] = self.via
        if self.error:
            fields["error"] = self.error
        return fields


class Standing:
    """What a session's agent said about its mode, model and options, last word first."""

    def __init__(self) -> None:
        self.now: dict[SettingName, str] = {}
        self.options: tuple[ConfigOption, ...] = ()
        self.asked: dict[SettingName, Setting] = {}

    def take_session_answer(self, result: object) -> None:
        """What `session/new` and `session/load` say: `modes`, `models` and `configOptions`."""
        options = result.get("configOptions") if isinstance(result, dict) else None
        if isinstance(options, list):
            self.take_options(OptionsNow(read_options(options)))
        self._learn("mode", text_at(object_at(result, "modes"), "currentModeId", limit=200))
        self._learn("model", text_at(object_at(result, "models"), "currentModelId", limit=200))

    def take_mode(self, update: ModeNow) -> None:
        """`current_mode_update`."""
        self._learn("mode", update.mode_id)

    def take_options(self, update: OptionsNow) -> None:
        """`config_option_update`, or the answer to `session/set_config_option`."""
        self.options = update.options
        for option in update.options:
            if option.category in ("mode", "model"):
                self._learn(option.category, option.current)  # type: ignore[arg-type]

    def option_for(self, name: SettingName) -> ConfigOption | None:
        """The select option of this category."""
        return next((option for option in self.options if option.category == name), None)

    def _learn(self, name: SettingName, value: str) -> None:
        if value:
            self.now[name] = value
            setting = self.asked.get(name)
            if setting is not None:
                setting.confirmed = value
