"""`python -m labaudit`."""

from labaudit.cli import main

main()
