"""Exit with 0 if the farm of this container answers."""

import os
import sys
import urllib.request


def main() -> None:
    """Ask, and say what is wrong on stderr."""
    url = f"http://127.0.0.1:{os.environ.get('FARM_PORT', '8700')}/healthz"  # noqa: TID251 - a script of its own
    try:
        urllib.request.urlopen(url, timeout=3)
    except OSError as error:
        sys.exit(f"the farm does not answer: {error}")


if __name__ == "__main__":
    main()
