#!/usr/bin/env bash
# Slurm 22.05.8 (Debian 12): whether `sbatch` refuses a job that no node of the cluster can hold depends on the option
# by which the same number of processors is asked for.
#
# On one node of 4 CPUs, `--mincpus=300` and `--mem` beyond the node's are refused at once ("Requested node
# configuration is not available", exit 1). `--nodes=1 --ntasks=1 --cpus-per-task=300` and `--nodes=1 --ntasks=300` ask
# for no less, are accepted, and stay PENDING (PartitionConfig) for ever. The default of EnforcePartLimits is why (NO),
# which by slurm.conf(5) is about the limits of partitions, and no partition has one here: with ALL, all four are
# refused. Who takes exit 0 for "will run some day" has to ask for the reason of a job that waits, or to add --mincpus.
# Needs root, and Debian 12 or its packages.
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
SelectType=select/cons_tres
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=38827
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
NodeName=n1 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=38828 CPUs=4
PartitionName=agents Nodes=ALL Default=YES
CONFIGURATION
slurmctld-wlm
slurmd-wlm -N n1 -d "$work/root/usr/sbin/slurmstepd-wlm"
until [ "$(sinfo -h -o %T)" = idle ]; do sleep 0.2; done

for enforced in NO ALL; do
    printf 'EnforcePartLimits=%s\n' "$enforced" >>slurm.conf
    scontrol reconfigure
    sleep 1
    for asked in --mincpus=300 --mem=99T "--nodes=1 --ntasks=1 --cpus-per-task=300" "--nodes=1 --ntasks=300"; do
        # shellcheck disable=SC2086 # several options
        said=$(sbatch --parsable -o /dev/null $asked --wrap true 2>&1) && code=0 || code=$?
        sleep 3
        state=
        [ $code -ne 0 ] || state=$(squeue -h -j "$said" -o '%T (%r)')
        echo "EnforcePartLimits=$enforced, $asked: exit $code${state:+, job $said $state}"
        echo "$code $state" >>seen
    done
    sed -i '/^EnforcePartLimits/d' slurm.conf
done
[ "$(paste -sd' ' seen)" = "1  1  0 PENDING (PartitionConfig) 0 PENDING (PartitionConfig) 1  1  1  1 " ]

# Seen twice, 2026-11:
# EnforcePartLimits=NO, --mincpus=300: exit 1
# EnforcePartLimits=NO, --mem=99T: exit 1
# EnforcePartLimits=NO, --nodes=1 --ntasks=1 --cpus-per-task=300: exit 0, job 3 PENDING (PartitionConfig)
# EnforcePartLimits=NO, --nodes=1 --ntasks=300: exit 0, job 4 PENDING (PartitionConfig)
# EnforcePartLimits=ALL, --mincpus=300: exit 1
# EnforcePartLimits=ALL, --mem=99T: exit 1
# EnforcePartLimits=ALL, --nodes=1 --ntasks=1 --cpus-per-task=300: exit 1
# EnforcePartLimits=ALL, --nodes=1 --ntasks=300: exit 1
