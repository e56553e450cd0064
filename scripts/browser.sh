#!/usr/bin/env bash
# See that there is a browser, and install one only where none is found.
# Usage: scripts/browser.sh BIN
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$1

if "$bin/python" -m agent.cli doctor >/dev/null 2>&1; then
    exit 0
fi
echo "No browser found; installing one …" >&2
"$bin/python" -m agent.cli doctor --install >&2
