#!/bin/sh
# Make the token that the farm and the agents of compose.yaml share, unless there is one.
set -eu
cd "$(dirname "$0")"
mkdir -p -m 0700 secrets
[ ! -e secrets/agent_token ] || exit 0
python3 -c 'import secrets; print("tf_" + secrets.token_urlsafe(32))' > secrets/agent_token
# Containers read it as users of their own; on this machine the folder keeps others out.
chmod 0444 secrets/agent_token
