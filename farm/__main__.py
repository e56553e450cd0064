"""The `farm` command, from its first moment on: to load all of it takes a second or more."""

import sys

_INTERRUPTED = 130
"""As `farm.cli.exits` has it, which is not loaded yet."""


def main() -> None:
    """Run the command line and exit; Ctrl-C while it is loaded ends it like Ctrl-C later on."""
    try:
        from farm.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
