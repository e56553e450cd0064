#!/usr/bin/env bash
# Make a virtual environment with everything in requirements.lock, and tabfarm itself in it.
# Usage: scripts/venv.sh PYTHON VENV
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1 venv=$2

fail() {
    echo >&2
    printf '%s\n' "$@" >&2
    exit 1
}

command -v "$python" >/dev/null ||
    fail "There is no $python." "On Debian or Ubuntu: apt-get install -y python3 python3-venv"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" --version) is too old: tabfarm needs Python 3.11 or newer." \
        "Name another one: make PYTHON=python3.12 …"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "$("$python" --version) can't make virtual environments." \
        "On Debian or Ubuntu: apt-get install -y python3-venv"

mkdir -p "$venv"
if command -v flock >/dev/null; then
    # Two makes at once install one after the other.
    exec 9>"$venv/.lock"
    flock 9
fi

"$venv/bin/python" -c 'import pip' 2>/dev/null || "$python" -m venv "$venv"
echo "Installing into $venv …" >&2
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --require-hashes -r requirements.lock
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --no-build-isolation --no-deps -e .
# What pyproject.toml asks for and the lock lacks shows here: `make lock` then.
"$venv/bin/python" -m pip check >/dev/null || fail "requirements.lock is behind pyproject.toml: make lock"
