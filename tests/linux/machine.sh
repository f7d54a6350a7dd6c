#!/usr/bin/env bash
# A whole machine with systemd as its first process, in namespaces of its own and on a copy of / that
# is thrown away with it. It is called as root, in a mount namespace that has DISK (a tmpfs):
#   machine.sh CGROUP DISK NAME
set -euo pipefail
cgroup=$1 disk=$2 name=$3
case ${4:-} in
    "")
        # This process stays outside of the group, or systemd would find a stranger in it.
        exec unshare --pid --fork --kill-child --mount --propagation private --uts --ipc --net \
            bash "$0" "$cgroup" "$disk" "$name" grouped
        ;;
    grouped)
        echo 0 >"$cgroup/cgroup.procs"
        exec unshare --cgroup bash "$0" "$cgroup" "$disk" "$name" inside
        ;;
esac

root=$disk/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$disk/upper,workdir=$disk/work" "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp" # its start empties /tmp
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t proc proc "$root/proc"
cat /proc/sys/kernel/random/uuid >"$root/run/boot_id"
mount --bind "$root/run/boot_id" "$root/proc/sys/kernel/random/boot_id"
# The kernel is everybody's: what is set there would be set for the machine around it.
for part in sys irq bus fs sysrq-trigger; do
    [ -e "$root/proc/$part" ] || continue
    mount --rbind "$root/proc/$part" "$root/proc/$part"
    mount -o remount,bind,ro "$root/proc/$part"
done
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for stream in 0:stdin 1:stdout 2:stderr; do
    ln -s "/proc/self/fd/${stream%%:*}" "$root/dev/${stream##*:}"
done

if [ ! -e "$root/etc/svcq-test-machine" ]; then # its first start
    touch "$root/etc/svcq-test-machine"
    echo "$name" >"$root/etc/hostname"
    : >"$root/etc/fstab"
    rm -rf "$root/var/log/journal"
    mkdir "$root/var/log/journal"
    # What would touch the kernel or the network, or takes time and matters to nobody here.
    for unit in systemd-sysctl.service systemd-modules-load.service systemd-random-seed.service \
        systemd-udevd.service systemd-timesyncd.service systemd-pstore.service getty.target \
        sys-kernel-debug.mount sys-kernel-tracing.mount sys-fs-fuse-connections.mount \
        dev-hugepages.mount e2scrub_reap.service apt-daily.timer apt-daily-upgrade.timer \
        dpkg-db-backup.timer e2scrub_all.timer fstrim.timer man-db.timer postgresql.service; do
        ln -sf /dev/null "$root/etc/systemd/system/$unit"
    done
    # A session is over when its last process is, not some time later.
    mkdir -p "$root/etc/systemd/logind.conf.d"
    printf '[Login]\nUserStopDelaySec=0\n' >"$root/etc/systemd/logind.conf.d/soon.conf"
fi
hostname "$name"
mkdir -p "$root/.around"
cd "$root"
pivot_root . .around
umount -l /.around
mount --make-rshared /
exec env -i container=svcq-test PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    setpriv --bounding-set=-sys_module,-sys_time,-sys_rawio,-syslog,-mac_admin,-mac_override \
    /lib/systemd/systemd --system --log-target=journal --show-status=no
