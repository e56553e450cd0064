"""`python -m farm.cli`."""

from farm.cli import main

main()
