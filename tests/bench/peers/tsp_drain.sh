# Queue commands behind two that wait, let those go, print the commands a second.
set -euo pipefail
socket=$1 left=$2 nanoseconds=0
# Each job that waits is a process connected to the server, which takes 1,000 and then no more: a
# drain of as many would never begin, since whoever lets it begin comes last.
most=500
export TS_SOCKET=$socket TS_MAXFINISHED=$((most + 10))
trap 'tsp -K' EXIT
tsp -S 2
mkfifo "$socket-gate" "$socket-end"
while [ "$left" -gt 0 ]; do
    batch=$((left < most ? left : most))
    left=$((left - batch))
    for _ in 1 2; do tsp -n sh -c "read _ <'$socket-gate'" >/dev/null; done
    for _ in $(seq 2 "$batch"); do tsp -n true >/dev/null; done
    tsp -n sh -c "echo >'$socket-end'" >/dev/null
    start=$(date +%s%N)
    exec 3<>"$socket-gate"
    printf 'go\ngo\n' >&3
    read -r _ <"$socket-end"
    # The last to start may end before the one beside it.
    while tsp | grep -E ' (running|queued) ' >/dev/null; do sleep 0.005; done
    nanoseconds=$((nanoseconds + $(date +%s%N) - start))
    exec 3>&-
    tsp -C
done
echo $(($2 * 1000000000 / nanoseconds))
