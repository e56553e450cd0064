#!/usr/bin/env bash
# Write the two locks of the images from requirements.lock: what tabfarm needs when it runs, over
# Redis, PostgreSQL and a bucket, too, and what builds its wheel. Same versions, same hashes, without
# what only its developers need.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3}" -m venv "$tools"
"$tools/bin/pip" install --quiet uv

compile() {
    "$tools/bin/uv" pip compile - --constraint requirements.lock \
        --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --no-annotate \
        --custom-compile-command docker/lock.sh --quiet --output-file "$1"
}
"${PYTHON:-python3}" -c '
import tomllib
with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
    extras = project["optional-dependencies"].values()
    print(*project["dependencies"], *(one for extra in extras for one in extra), sep="\n")
' | compile docker/runtime.lock
echo hatchling | compile docker/build.lock
