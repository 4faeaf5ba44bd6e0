#!/usr/bin/env bash
# A machine in namespaces of its own: machine.sh boot NAME GROUP NETWORK FOLDER becomes its first process, systemd.
# Its files are this machine's with a layer over them in memory, and nothing is enabled but ssh. machine.sh bury NAME
# GROUP removes its control groups when it is off.
set -euo pipefail
step=$1 name=$2 group=$3

# groups lists this process's control groups: the options that mount their hierarchy, where it is mounted, the group.
groups() {
	while IFS=: read -r _ names path; do
		local folder=/sys/fs/cgroup/${names#name=} options=$names
		case $names in
		"") options=- folder=/sys/fs/cgroup; [ ! -d /sys/fs/cgroup/unified ] || folder=/sys/fs/cgroup/unified ;;
		name=*) options=none,$names ;;
		esac
		[ ! -d "$folder" ] || echo "$options" "$folder" "${path%/}/$group"
	done <<<"$(cat /proc/self/cgroup)"
}

case $step in
boot)
	network=$4 folder=$5
	lists=$(groups)
	while read -r options where path; do
		mkdir -p "$where$path"
		case $options in cpuset*)
			for file in cpuset.cpus cpuset.mems; do cat "$where$path/../$file" >"$where$path/$file"; done ;;
		esac
		echo $$ >"$where$path/cgroup.procs"
	done <<<"$lists"
	export lists
	exec nsenter --net="/run/netns/$network" unshare --mount --uts --ipc --pid --cgroup --fork --kill-child \
		"$BASH" "$0" inside "$name" "$group" "$folder"
	;;
inside)
	folder=$4 root=$4/root
	mount -t tmpfs machine "$folder"
	mkdir "$folder/over" "$folder/work" "$root"
	mount -t overlay -o "lowerdir=/,upperdir=$folder/over,workdir=$folder/work" machine "$root"
	mount -t proc proc "$root/proc"
	mount --bind "$root/proc/sys" "$root/proc/sys"
	mount -o remount,bind,ro "$root/proc/sys" # it is this machine's as well
	mount -t sysfs -o ro sysfs "$root/sys"
	while read -r options where _; do
		if [ "$options$where" = -/sys/fs/cgroup ]; then
			mount -t cgroup2 cgroup2 "$root$where"
			continue
		fi
		mountpoint -q "$root/sys/fs/cgroup" || mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
		mkdir "$root$where"
		case $options in
		-) mount -t cgroup2 cgroup2 "$root$where" ;;
		*) mount -t cgroup -o "$options" cgroup "$root$where" ;;
		esac
	done <<<"$lists"
	for place in run tmp dev root; do mount -t tmpfs tmpfs "$root/$place"; done
	for device in null zero full random urandom tty; do
		: >"$root/dev/$device"
		mount --bind "/dev/$device" "$root/dev/$device"
	done
	mkdir "$root/dev/pts" "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"

	cd "$root"
	rm -rf etc/systemd/system/*.wants etc/rc?.d
	mkdir -p root/.ssh etc/systemd/system/multi-user.target.wants
	ln -s /lib/systemd/system/ssh.service etc/systemd/system/multi-user.target.wants
	: >etc/machine-id
	: >etc/fstab
	rm -f var/lib/man-db/auto-update # installing takes seconds where manuals are indexed
	echo "$name" >etc/hostname
	cat "$folder/../hosts" >etc/hosts
	cat "$folder/../key" >root/.ssh/id_ed25519
	cat "$folder/../key.pub" >root/.ssh/authorized_keys
	echo "StrictHostKeyChecking no" >root/.ssh/config
	chmod -R go= root
	hostname "$name"
	mkdir -p old
	pivot_root . old
	umount -l old
	exec env -i container=starling PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd
	;;
bury)
	groups | while read -r _ where path; do
		[ ! -d "$where$path" ] || find "$where$path" -depth -type d -exec rmdir {} +
	done
	;;
esac
