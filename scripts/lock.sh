#!/usr/bin/env bash
# Write requirements.lock: everything pyproject.toml asks for, for every Python from 3.11 on, by name
# and hash, and from that the locks of the images. None names a registry, so that they work with
# whichever one pip is set up to use.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3}" -m venv "$tools"
"$tools/bin/pip" install --quiet uv

printf 'hatchling\neditables\n' | "$tools/bin/uv" pip compile pyproject.toml - \
    --group dev --universal --python-version 3.11 --upgrade \
    --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate \
    --custom-compile-command "make lock" --quiet --output-file requirements.lock

# What the images install, in the same versions.
PYTHON="${PYTHON:-python3}" docker/lock.sh
