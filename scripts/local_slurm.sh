#!/usr/bin/env bash
# A real Slurm of one node on this machine, to try `--executor slurm` and to test it. Needs no systemd and no accounting.
#
#     scripts/local_slurm.sh start [DIR]     prints `export SLURM_CONF=...`, which every command of Slurm needs
#     scripts/local_slurm.sh status DIR      what the node and the queue look like
#     scripts/local_slurm.sh stop DIR        ends its jobs and daemons and deletes DIR
#
# On Debian: apt-get install slurm-wlm munge. The daemons run as the user who starts them, who alone can submit jobs.
# The node says that it has 8 CPUs, whatever there are, so that several small jobs run at once. The partition `urgent`
# takes the node away from jobs of the partition `main`, which are then requeued.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

die() { echo "error: $*" >&2; exit 2; }

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

write_config() {
    local user host
    user=$(id -un)
    host=$(hostname -s)
    cat > "$DIR/slurm.conf" <<END
ClusterName=local
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$DIR/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
DefMemPerNode=8000
KillWait=2
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,bf_interval=1
SlurmdParameters=config_overrides
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool
SlurmctldPidFile=$DIR/slurmctld.pid
SlurmdPidFile=$DIR/slurmd.pid
SlurmctldLogFile=$DIR/slurmctld.log
SlurmdLogFile=$DIR/slurmd.log
NodeName=$host NodeAddr=127.0.0.1 CPUs=8 RealMemory=64000 State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE PriorityTier=1 State=UP
PartitionName=urgent Nodes=$host MaxTime=INFINITE PriorityTier=2 State=UP
END
}

start() {
    for program in munged slurmctld slurmd sbatch; do
        command -v "$program" > /dev/null || die "there is no $program here. Type: apt-get install slurm-wlm munge"
    done
    if [ -z "$DIR" ]; then DIR=$(mktemp -d "${TMPDIR:-/tmp}/local-slurm.XXXXXX"); fi
    mkdir -p "$DIR/state" "$DIR/spool"
    DIR=$(cd "$DIR" && pwd)
    chmod 700 "$DIR"
    write_config
    export SLURM_CONF=$DIR/slurm.conf
    (umask 077 && head -c 128 /dev/urandom > "$DIR/munge.key")
    munged --force --key-file="$DIR/munge.key" --socket="$DIR/munge.socket" --pid-file="$DIR/munged.pid" \
        --log-file="$DIR/munged.log" --seed-file="$DIR/munge.seed"
    slurmctld -c
    slurmd -c
    for _ in $(seq 100); do
        if [ "$(sinfo -h -o %T 2> /dev/null | head -1)" = idle ]; then echo "export SLURM_CONF=$SLURM_CONF"; return; fi
        sleep 0.1
    done
    tail -n 5 "$DIR"/*.log >&2
    stop
    die "the node did not come up"
}

end() {  # the daemon with this name, and wait until it is gone
    local pid
    pid=$(cat "$DIR/$1.pid" 2> /dev/null) || return 0
    kill "$pid" 2> /dev/null || return 0
    for _ in $(seq 100); do
        kill -0 "$pid" 2> /dev/null || return 0
        sleep 0.1
    done
    kill -9 "$pid" 2> /dev/null || true
}

stop() {
    export SLURM_CONF=$DIR/slurm.conf
    [ -f "$SLURM_CONF" ] || die "there is no Slurm in $DIR"
    timeout 5 scancel --user="$(id -un)" 2> /dev/null || true
    for _ in $(seq 50); do
        [ -z "$(timeout 5 squeue -h 2> /dev/null)" ] && break
        sleep 0.1
    done
    end slurmd
    end slurmctld
    end munged
    rm -rf "$DIR"
}

DIR=${2:-}
case "${1:-}" in
    start) start ;;
    status) [ -n "$DIR" ] || die "give the directory"; SLURM_CONF=$DIR/slurm.conf sinfo; SLURM_CONF=$DIR/slurm.conf squeue ;;
    stop) [ -n "$DIR" ] || die "give the directory"; stop ;;
    *) die "usage: scripts/local_slurm.sh start [DIR] | status DIR | stop DIR" ;;
esac
