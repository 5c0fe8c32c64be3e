# Boots systemd as process 1 of namespaces of its own, on top of this machine's files, and ends when it ends: boot.sh DIRECTORY TREE NODE.
# DIRECTORY has the units, the configuration and the rule, and gets what they write; what they change otherwise is in memory.
# It runs in mount and network namespaces and a cgroup of its own.
set -eu
directory=$1 tree=$2 node=$3
root=$directory/root
layers=$directory/layers
mount -t tmpfs tmpfs "$layers"
mkdir "$layers/changes" "$layers/work"
mount -t overlay overlay -o "lowerdir=/,upperdir=$layers/changes,workdir=$layers/work" "$root"
cd "$root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/shm dev/pts
mount -t tmpfs tmpfs dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
for device in null zero full random urandom tty; do
  touch "dev/$device"
  mount --bind "/dev/$device" "dev/$device"
done
ln -s /proc/self/fd dev/fd

# Nothing that this machine starts is started here.
rm -rf etc/systemd/system opt/cinnabar/current etc/cinnabar var/lib/cinnabar
mkdir -p etc/systemd/system opt/cinnabar/current etc/cinnabar etc/polkit-1/rules.d usr/local/bin srv/test
mount --bind "$tree" opt/cinnabar/current
touch usr/local/bin/node
mount --bind "$node" usr/local/bin/node
mount --bind "$directory" srv/test
cp "$tree/packaging/cinnabar.service" srv/test/demo.service srv/test/probe.service etc/systemd/system
cp srv/test/cinnabar.toml etc/cinnabar
install -m 644 srv/test/cinnabar.rules etc/polkit-1/rules.d/40-cinnabar.rules
id -u cinnabar > /dev/null 2>&1 || chroot . useradd --system --home-dir /var/lib/cinnabar --shell /usr/sbin/nologin cinnabar

mkdir machine
pivot_root . machine
umount --lazy machine
exec env -i container=other PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --unit=probe.service --log-target=null --show-status=no
