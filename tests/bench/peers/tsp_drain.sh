# Queue commands behind two that wait, let those go, print the commands a second.
set -euo pipefail
export TS_SOCKET=$1 TS_MAXFINISHED=$(($2 + 10))
trap 'tsp -K' EXIT
tsp -S 2
mkfifo "$1-gate"
for _ in 1 2; do tsp -n sh -c "read _ <'$1-gate'" >"$1-ids"; done
for _ in $(seq "$2"); do tsp -n true >"$1-ids"; done
start=$(date +%s%N)
exec 3<>"$1-gate"
printf 'go\ngo\n' >&3
tsp -w "$(cat "$1-ids")"
# The last to start may end before the one beside it.
while tsp | grep -qE ' (running|queued) '; do sleep 0.005; done
echo $(($2 * 1000000000 / ($(date +%s%N) - start)))
