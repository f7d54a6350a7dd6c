# Queue commands one after the other while they run, wait for the last, print the commands a second.
set -euo pipefail
export TS_SOCKET=$1 TS_MAXFINISHED=$(($2 + 10))
trap 'tsp -K' EXIT
tsp -S 2
start=$(date +%s%N)
for _ in $(seq "$2"); do tsp -n true >/dev/null; done
tsp -w
# The last to start may end before the one beside it.
while tsp | grep -E ' (running|queued) ' >/dev/null; do sleep 0.005; done
echo $(($2 * 1000000000 / ($(date +%s%N) - start)))
