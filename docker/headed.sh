#!/bin/bash
# Start a display and a window manager, then become the command, which is the agent. The kernel ends
# both with it; a signal reaches the agent alone, so that its windows go before their screen.
set -euo pipefail

# Stays open: Xvfb dies of writing to a closed pipe.
exec 3< <(exec setpriv --pdeathsig KILL \
    Xvfb -displayfd 1 -screen 0 "${SCREEN:-1600x1000x24}" -nolisten tcp -noreset 2>/dev/null)
read -r -t 20 -u 3 number || { echo "Xvfb does not say on which display it is" >&2; exit 1; }
export DISPLAY=":$number"
setpriv --pdeathsig KILL jwm >/dev/null 2>&1 &
exec "$@"
