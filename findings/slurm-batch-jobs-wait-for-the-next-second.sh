#!/usr/bin/env bash
# Slurm 22.05.8 (Debian 12): with `SchedulerParameters=batch_sched_delay=0,sched_interval=1`, a job of `sbatch` that
# meets an idle node still waits up to a second for it, while a job of `srun` gets it at once.
#
# By slurm.conf(5), batch_sched_delay is how long the scheduling of batch jobs can be delayed (default 3 seconds), and
# sched_interval how often the main loop runs. Neither has jobs of `sbatch` placed when they are submitted: the
# controller only notes that there is something to do, and looks at that note once a second, or when another job ends.
# So one job after the other, each submitted at the end of the last one, takes half a second more than its work, and
# jobs that are submitted together begin together. What is measured is the controller's own log: from the line that
# acknowledges the job to the line that allocates nodes to it. Needs root, and Debian 12 or its packages.
set -euo pipefail
[ "${1:-}" = bounded ] || exec timeout 120 bash "$0" bounded

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
SelectType=select/cons_tres
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=38837
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
NodeName=n1 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=38838 CPUs=4
PartitionName=agents Nodes=ALL Default=YES
CONFIGURATION
slurmctld-wlm
slurmd-wlm -N n1 -d "$work/root/usr/sbin/slurmstepd-wlm"
until [ "$(sinfo -h -o %T)" = idle ]; do sleep 0.2; done

for _ in $(seq 12); do
    until [ -z "$(squeue -h)" ]; do sleep 0.1; done
    sleep "0.$((RANDOM % 10))$((RANDOM % 10))" # at any time within a second
    sbatch -o /dev/null --wrap true >/dev/null
done
until [ -z "$(squeue -h)" ]; do sleep 0.1; done
awk -F '[][]' '
    { split($2, t, "T"); split(t[2], c, ":"); now = c[1] * 3600 + c[2] * 60 + c[3] }
    match($0, /JobId=[0-9]+/) { job = substr($0, RSTART, RLENGTH) }
    /_slurm_rpc_submit_batch_job/ { submitted[job] = now }
    /sched: Allocate/ { printf "%.3f\n", now - submitted[job] }' slurmctld.log | sort -n >sbatch
for _ in $(seq 12); do
    until [ -z "$(squeue -h)" ]; do sleep 0.1; done
    began=$(date +%s%N)
    srun true 2>/dev/null
    echo $((($(date +%s%N) - began) / 1000000))
done | sort -n >srun
echo "sbatch: from submission to allocation $(sed -n 6p sbatch) s, median of $(wc -l <sbatch)"
echo "srun: from command to end .$(printf %03d "$(sed -n 6p srun)") s, median of $(wc -l <srun)"
sinfo --version
awk -v srun="$(sed -n 6p srun)" 'NR == 6 { exit !($1 > 0.2 && $1 * 1000 > 2 * srun) }' sbatch

# Seen twice, 2026-11, on a machine with other work:
# sbatch: from submission to allocation 0.672 s, median of 12; srun: from command to end .095 s
# sbatch: from submission to allocation 0.456 s, median of 12; srun: from command to end .104 s
# slurm-wlm 22.05.8
