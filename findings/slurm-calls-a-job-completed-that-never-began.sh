#!/usr/bin/env bash
# Slurm 22.05.8 (Debian 12), control groups of version 1: with ProctrackType=proctrack/cgroup and no cgroup.conf, a job
# is COMPLETED with exit code 0:0 although its script was never started, and its node is drained.
#
# By cgroup.conf(5) all of its settings have defaults, CgroupMountpoint=/sys/fs/cgroup included, and slurmd starts
# without it. Its slurmstepd then cannot create a control group ("unable to create freezer cgroup namespace" in
# slurmd.log), starts nothing and reports a failure. For that the controller drains the node ("batch job complete
# failure"), and calls the job a success all the same. With a file that states the default, the job runs. So neither
# COMPLETED nor 0:0 says that a script has begun; have it leave a mark. Needs root, and Debian 12 or its packages.
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
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=38847
SlurmUser=root
AuthInfo=socket=$work/munge/socket
PluginDir=$libraries/slurm-wlm
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/cgroup
SlurmdParameters=config_overrides
MpiDefault=none
NodeName=n1 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=38848 CPUs=4
PartitionName=agents Nodes=ALL Default=YES
CONFIGURATION
slurmctld-wlm
run() { # a job that leaves a file; what is left of it
    slurmd-wlm -N n1 -d "$work/root/usr/sbin/slurmstepd-wlm"
    until [ "$(sinfo -h -o %T)" = idle ]; do
        sleep 0.3
        scontrol update NodeName=n1 State=RESUME 2>/dev/null || true
    done
    job=$(sbatch --parsable -o /dev/null --wrap "touch $work/began-$1")
    until [ -z "$(squeue -h -j "$job")" ]; do sleep 0.2; done
    sleep 1
    began=no
    [ ! -e "began-$1" ] || began=yes
    ended=$(scontrol show job "$job" | grep -o 'JobState=[A-Z_]*\|ExitCode=[0-9:]*' | paste -sd' ')
    echo "cgroup.conf $1: begun: $began, $ended, node $(sinfo -h -o '%T (%E)')"
    kill "$(cat slurmd.pid)"
    while [ -e slurmd.pid ]; do sleep 0.1; done
}
run absent | tee absent
echo CgroupMountpoint=/sys/fs/cgroup >cgroup.conf
run present | tee present
sinfo --version
success="JobState=COMPLETED ExitCode=0:0"
[ "$(cat absent)" = "cgroup.conf absent: begun: no, $success, node drained (batch job complete failure)" ]
[ "$(cat present)" = "cgroup.conf present: begun: yes, $success, node idle (none)" ]

# Seen twice, 2026-11:
# cgroup.conf absent: begun: no, JobState=COMPLETED ExitCode=0:0, node drained (batch job complete failure)
# cgroup.conf present: begun: yes, JobState=COMPLETED ExitCode=0:0, node idle (none)
# slurm-wlm 22.05.8
