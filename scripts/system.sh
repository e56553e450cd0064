#!/usr/bin/env bash
# Install the Debian packages that the tests use beside the browser: pages nobody here wrote, a
# display for headed windows and a person at it, an encoder of videos, what builds the container
# images, a Redis, a PostgreSQL, and a balancer.
set -euo pipefail

wanted=(
    python3-doc xvfb xauth xdotool jwm libxtst6 buildah debootstrap crun redis-server postgresql
    ffmpeg haproxy
)

command -v dpkg-query >/dev/null || {
    echo "Not a Debian system: tests that need ${wanted[*]} are skipped, or fail where CI is set." >&2
    exit 0
}
missing=()
for package in "${wanted[@]}"; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

install="apt-get install -y --no-install-recommends ${missing[*]}"
if [ "$(id -u)" -ne 0 ]; then
    echo "Some tests are skipped, or fail where CI is set. As root: $install" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt="apt-get -o DPkg::Lock::Timeout=300 -qq"
$apt update
$apt install -y --no-install-recommends "${missing[@]}" >/dev/null
