#!/bin/bash
# Runs in namespaces of its own: makes a root folder out of this machine's, in memory, and begins systemd in it.
# $1: an empty folder. $2: the checkout. $3: the Python installation. $4: its packages. $5: the folder of models.
set -euo pipefail
box=$1

mount -t tmpfs -o mode=755 box "$box"
mkdir "$box"/{upper,work,root}
mount -t overlay -o "lowerdir=/,upperdir=$box/upper,workdir=$box/work" overlay "$box/root"
root=$box/root

# What the service sees of this machine: under /opt, since homes are hidden from it; read-only, since systemd gives a
# service's own folders to its user, with all that is in them.
bound() {
  [ -d "$1" ] || return 0
  mkdir -p "$2"
  mount --bind "$1" "$2"
  mount -o remount,bind,ro "$2"
}
bound "$3" "$root/opt/python"
bound "$5" "$root/opt/models"
for version in 0.1.0 0.2.0; do  # The same program twice; which one a process is, its environment says.
  folder=/opt/voicepipe-$version
  bound "$4" "$root$folder/site-packages"
  bound "$2" "$root$folder/checkout"
  mkdir -p "$root$folder/bin"
  cat >"$root$folder/bin/voicepipe" <<SH
#!/bin/sh
export LD_LIBRARY_PATH=/opt/python/lib PYTHONPATH=$folder/checkout:$folder/site-packages
exec /opt/python/bin/python3 -sB -m voicepipe "\$@"
SH
  chmod 755 "$root$folder/bin/voicepipe"
done
mkdir -p "$root/var/cache/voicepipe"
ln -s /opt/models "$root/var/cache/voicepipe/models"

for folder in run tmp var/tmp etc/voicepipe; do mkdir -p "$root/$folder"; mount -t tmpfs -o mode=755 new "$root/$folder"; done
chmod 1777 "$root"/tmp "$root"/var/tmp
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"  # Nothing of this machine is set from here.
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 dev "$root/dev"
for device in null zero full random urandom tty; do touch "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
mkdir "$root"/dev/{pts,shm}
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs shm "$root/dev/shm"
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
else
  mount -t tmpfs -o mode=755 cgroup "$root/sys/fs/cgroup"
  mkdir "$root"/sys/fs/cgroup/{systemd,unified}
  mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup/unified"
fi

# This machine's own services do not run there.
rm -rf "$root"/lib/systemd/system/*.wants "$root"/etc/systemd/system/* "$root"/etc/fstab "$root"/etc/nats-server.conf
printf '[Unit]\nWants=systemd-journald.service dbus.socket\n' >"$root/etc/systemd/system/box.target"
ip link set lo up

cd "$root"
pivot_root . mnt
umount -l /mnt
mount --make-rshared /
container=namespaces exec /lib/systemd/systemd --system --unit=box.target --show-status=false --log-target=journal
