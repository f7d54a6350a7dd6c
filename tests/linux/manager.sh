#!/usr/bin/env bash
# A user's systemd in namespaces of its own, run in the foreground: manager.sh CGROUP FOLDER
# It is called under `unshare --pid --fork --mount`, as root; the machine's own files stay untouched.
set -euo pipefail
cgroup=$1 folder=$2
if [ "${3:-}" != inside ]; then
    echo 0 >"$cgroup/cgroup.procs"
    exec unshare --cgroup bash "$0" "$cgroup" "$folder" inside
fi
mount -t proc proc /proc
mount -t tmpfs tmpfs /sys/fs/cgroup # cgroup2 cannot be mounted on another cgroup2
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/systemd/system # by this folder systemd tells that it was booted
# As a child: the first process of a namespace is taken for the system's manager.
env -i PATH="$PATH" HOME="$folder/home" LANG=C.UTF-8 XDG_RUNTIME_DIR="$folder/run" \
    DBUS_SESSION_BUS_ADDRESS="unix:path=$folder/run/bus" \
    /lib/systemd/systemd --user --log-target=console
