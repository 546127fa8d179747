"""The command line: one file per command, loaded when it is called; errors become exit codes here alone."""

from __future__ import annotations

import importlib
import os
import sys

import click

from labaudit import __version__
from labaudit.cli.ending import flush_output, in_our_words, settle_output
from labaudit.errors import LabauditError

# name -> (module, attribute, one-line help); the help stands here so that `labaudit --help` loads no command.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "init": ("init_command", "init", "Write a small working experiment to start from."),
    "demo": ("demo_command", "demo", "The whole way on a bundled experiment."),
    "doctor": ("doctor_command", "doctor", "Check engine, kernel, sandbox, schemas, keys, clock."),
    "validate": ("validate_command", "validate", "Resolve an experiment without running it."),
    "run": ("run_command", "run", "Run an experiment: trials, evidence, grades, analysis, signature."),
    "resume": ("resume_command", "resume", "Go on with an interrupted run."),
    "status": ("status_command", "status", "What is running, and how far it is."),
    "runs": ("status_command", "runs", "List the runs of this lab."),
    "control": ("control_command", "control", "Tell a running trial to continue, stop or checkpoint."),
    "replay": ("replay_command", "replay", "Re-execute a trial and report every divergence."),
    "fork": ("fork_command", "fork", "A new trial from a checkpoint with changed bindings."),
    "analyze": ("analyze_command", "analyze", "Analyse a run, or recompute a sealed one and compare."),
    "compare": ("compare_command", "compare", "Paired differences and suspects of one variant."),
    "grade": ("grade_command", "grade", "Recompute grades from evidence."),
    "keys": ("keys_command", "keys", "Local signing keys and the trust store."),
    "attest": ("attest_command", "attest", "Show or make a run's attestations."),
    "sbom": ("sbom_command", "sbom", "Bills of materials of image and harness."),
    "bundle": ("bundle_command", "bundle", "A deterministic zip of a run that verifies as it is."),
    "verify": ("verify_command", "verify", "Check a run, bundle, site, session or single-trial proof."),
    "site": ("site_command", "site", "Build the static site of one or more runs."),
    "serve": ("serve_command", "serve", "Look at a site on a loopback server."),
    "import": ("import_command", "import_results", "Another tool's results as a run."),
    "import-check": ("import_check_command", "import_check", "Whether an imported run follows from its files."),
    "export": ("export_command", "export", "A run's results in another tool's format."),
    "schema": ("schema_command", "schema", "List or show the registry's schemas."),
    "schema-validate": ("schema_command", "schema_validate", "Check a document against a schema."),
    "hooks-validate": ("hooks_validate_command", "hooks_validate", "Check a hook stream against its rules."),
    "contract": ("contract_command", "contract", "Check Task, Scenario, Run and Score records."),
    "a2a": ("a2a_command", "a2a", "Convert and check A2A packets."),
    "acp": ("acp_command", "acp", "Talk to an ACP agent, transcript recorded."),
    "bridge": ("bridge_command", "bridge", "The recorded chat bridge."),
}


class LazyGroup(click.Group):
    """Finds a command's module when it is called, and leaves out commands this installation does not have."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, (module, _, _) in COMMANDS.items() if _is_present(module)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS or not _is_present(COMMANDS[cmd_name][0]):
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(f"labaudit.cli.{module}"), attribute)
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except OSError as error:
            # click would end with 1 and without a word on a broken pipe, whatever pipe it is.
            raise in_our_words(error) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][2]) for name in self.list_commands(ctx)])


def _is_present(module: str) -> bool:
    return os.path.exists(os.path.join(os.path.dirname(__file__), f"{module}.py"))  # noqa: PTH110, PTH118, PTH120


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", prog_name="labaudit", message="%(prog)s %(version)s")
def labaudit() -> None:
    """Benchmark results of AI agents that anyone can check.

    Example: labaudit demo
    """


def main() -> None:
    """The console script: runs a command and ends with the documented exit code."""
    settle_output()
    sys.exit(flush_output(invoke()))


def invoke(arguments: list[str] | None = None) -> int:
    """Runs one command line (the process's own without `arguments`) and returns its exit code."""
    try:
        code = labaudit.main(arguments, standalone_mode=False, prog_name="labaudit")
    except LabauditError as error:
        _say(f"labaudit: {error}")
        return error.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt):
        _say("labaudit: interrupted")
        return 130
    except click.ClickException as error:
        error.show()
        return 2
    except Exception as error:  # noqa: BLE001 - the one catcher of what nobody foresaw
        unforeseen = in_our_words(error)
        _say(f"labaudit: {unforeseen}")
        return unforeseen.exit_code
    return code if isinstance(code, int) else 0


def _say(text: str) -> None:
    click.echo(text, err=True)
