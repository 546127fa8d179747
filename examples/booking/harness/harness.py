"""Runs the task of this trial with the modules in `contracts_kit/modules`; needs python3 and nothing else.

`labaudit contract kit examples/booking/harness` puts `contracts_kit` here: it is labaudit's code, so git has it once.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    """The kit's own program, or a sentence that says how to get the kit."""
    if not (HERE / "contracts_kit").is_dir():
        print(f"contracts_kit is missing: run `labaudit contract kit {HERE}` where the experiment is", file=sys.stderr)
        return 4
    sys.path.insert(0, str(HERE))
    from contracts_kit.scenarios import harness

    return harness.main()


if __name__ == "__main__":
    sys.exit(main())
