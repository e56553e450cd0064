#!/bin/sh
# Make what compose.shared.yaml keeps secret, but for what is there already.
set -eu
cd "$(dirname "$0")"
./make-token.sh
if [ ! -e secrets/identity_key ]; then
    python3 -c 'import base64, os; print(base64.urlsafe_b64encode(os.urandom(32)).decode())' > secrets/identity_key
fi
if [ ! -e secrets/postgres_password ]; then
    python3 -c 'import secrets; print(secrets.token_urlsafe(32), end="")' > secrets/postgres_password
fi
printf 'FARM_LEDGER__URL=postgresql://farm:%s@postgres/farm\n' "$(cat secrets/postgres_password)" > secrets/ledger.env
# As with the token: the folder keeps others out.
chmod 0444 secrets/identity_key secrets/postgres_password
chmod 0600 secrets/ledger.env
