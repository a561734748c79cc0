#!/usr/bin/env bash
# Slurm 22.05.8 (Debian 12): a job that `sbatch` has acknowledged is forgotten when slurmctld is killed, and the next
# job gets its id.
#
# slurmctld saves its table at most every five seconds, and answers before. So neither "Submitted" nor an id is a
# promise: who asks for that id later is told about a stranger's job. Look jobs up by a name of your own, and have the
# job itself see to it that it runs once. Needs root, and Debian 12 or its packages.
set -euo pipefail

version=22.05.8-4+deb12u3
work=$(mktemp -d)
chmod 755 "$work"
end() {
    local pids
    pids=$(cat "$work"/*.pid)
    for pid in $pids; do kill "$pid" 2>/dev/null || true; done
    for pid in $pids; do while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done; done
}
trap 'end; rm -rf "$work"' EXIT
mkdir "$work/state" "$work/spool" "$work/munge"
cd "$work"
apt-get download -qq munge libmunge2 libhwloc15 \
    {slurmctld,slurmd,slurm-client,slurm-wlm-basic-plugins}=$version 2>/dev/null
for deb in *.deb; do dpkg -x "$deb" root; done
libraries=$work/root/usr/lib/$(uname -m)-linux-gnu
export LD_LIBRARY_PATH=$libraries/slurm-wlm:$libraries SLURM_CONF=$work/slurm.conf
export PATH=$work/root/usr/bin:$work/root/usr/sbin:$PATH

head -c 1024 /dev/urandom >munge/key
chmod 600 munge/key
munged --force --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munged.pid" \
    --log-file="$work/munge/log" --seed-file="$work/munge/seed" 2>/dev/null
cat >slurm.conf <<CONFIGURATION
ClusterName=finding
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=38817
SlurmUser=root
AuthInfo=socket=$work/munge/socket
PluginDir=$libraries/slurm-wlm
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
SlurmdParameters=config_overrides
MpiDefault=none
NodeName=n1 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=38818 CPUs=4
PartitionName=agents Nodes=ALL Default=YES
CONFIGURATION
slurmctld-wlm
slurmd-wlm -N n1 -d "$work/root/usr/sbin/slurmstepd-wlm"
until [ "$(sinfo -h -o %T)" = idle ]; do sleep 0.2; done

# The first has the table saved; the second comes within the five seconds after that.
sbatch --parsable -J first -o /dev/null --wrap 'sleep 60' >/dev/null
sleep 1.5
acknowledged=$(sbatch --parsable -J acknowledged -o /dev/null --wrap 'sleep 60')
kill -9 "$(cat slurmctld.pid)"
sleep 0.5
slurmctld-wlm
until scontrol ping | grep -q UP; do sleep 0.2; done
known=$(squeue -h -n acknowledged -o %i)
next=$(sbatch --parsable -J stranger -o /dev/null --wrap true)
echo "acknowledged as job $acknowledged; after kill -9 of slurmctld it is job '${known}'; the next job is $next"
scancel --me
[ -z "$known" ] && [ "$next" = "$acknowledged" ]

# Seen twice, 2026-11:
# acknowledged as job 2; after kill -9 of slurmctld it is job ''; the next job is 2
