#!/bin/bash
# SPDX-License-Identifier: MIT
#
# slurm.sh DIR COMMAND…: runs COMMAND with a Slurm of one node, whose files are all in DIR. Starts
# munged, slurmctld and slurmd, and stops them by their process numbers. Needs root, Debian's
# slurm-wlm and munge, and no systemd. Exits 77 if they are missing or do not start.

dir=$1
shift
host=$(hostname -s)
for tool in munged slurmctld slurmd srun; do
	PATH=$PATH:/usr/sbin command -v $tool >/dev/null || { echo "no $tool" >&2; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo 'only root may start Slurm' >&2; exit 77; }
PATH=$PATH:/usr/sbin
mkdir -p "$dir"/{spool,state}
# User munge may not be able to search the parents of DIR.
munge=$(mktemp -d /tmp/fcopy-munge.XXXXXX) || exit 1
head -c 1024 /dev/urandom >"$munge/key"
chmod 400 "$munge/key"
chown munge "$munge" "$munge/key"
mkdir -p /run/munge
chown munge /run/munge
cat >"$dir/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0
MinJobAge=300
SlurmdSpoolDir=$dir/spool
StateSaveLocation=$dir/state
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=p Nodes=$host Default=YES State=UP OverSubscribe=FORCE:8
END
export SLURM_CONF=$dir/slurm.conf
started=()

# shellcheck disable=SC2329 # by the trap
stop_all() {
	local pid
	for pid in "${started[@]}"; do kill "$pid" 2>/dev/null; done
	for pid in "${started[@]}"; do wait "$pid" 2>/dev/null; done
	rm -rf "$munge"
}
trap stop_all EXIT
trap 'exit 143' TERM INT HUP

# In the foreground, so that their process numbers are known.
if [ ! -S /run/munge/munge.socket.2 ] || ! munge -n >/dev/null 2>&1; then
	setpriv --pdeathsig KILL --reuid munge --regid munge --clear-groups munged --foreground --force \
		--key-file="$munge/key" --pid-file="$munge/pid" --log-file="$munge/log" \
		--seed-file="$munge/seed" >/dev/null 2>&1 &
	started+=($!)
fi
for _ in {1..50}; do
	munge -n >/dev/null 2>&1 && break
	sleep 0.1
done
setpriv --pdeathsig KILL slurmctld -D >/dev/null 2>&1 &
started+=($!)
setpriv --pdeathsig KILL slurmd -D >/dev/null 2>&1 &
started+=($!)
for _ in {1..100}; do
	timeout 5 sinfo --noheader --format=%T 2>/dev/null | grep -q 'idle\|mixed' && break
	sleep 0.2
done
if ! timeout 5 sinfo --noheader --format=%T 2>/dev/null | grep -q 'idle\|mixed'; then
	{
		echo 'Slurm did not start'
		tail -n 3 "$dir"/*.log "$munge/log"
	} >&2
	exit 77
fi
"$@"
