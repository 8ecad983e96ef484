#!/usr/bin/env bash
# A real Slurm of one node on this machine, to try `--executor slurm` and to test it. Needs no systemd.
#
#     scripts/local_slurm.sh start [DIR]            prints `export SLURM_CONF=...`, which every command of Slurm needs
#     scripts/local_slurm.sh start DIR accounting   the same with slurmdbd and a MariaDB, so that `sacct` answers
#     scripts/local_slurm.sh status DIR             what the node and the queue look like
#     scripts/local_slurm.sh stop DIR               ends its jobs and daemons and deletes DIR
#
# On Debian: apt-get install slurm-wlm munge, and mariadb-server slurmdbd for the accounting. The daemons run as the
# user who starts them, who alone can submit jobs.
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

need() {  # PACKAGES PROGRAM...
    for program in "${@:2}"; do
        command -v "$program" > /dev/null || die "there is no $program here. Type: apt-get install $1"
    done
}

start_accounting() {
    local port user
    port=$(free_port)
    user=$(id -un)
    cat >> "$DIR/slurm.conf" <<END
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$port
AccountingStoragePass=$DIR/munge.socket
END
    (umask 077 && cat > "$DIR/slurmdbd.conf") <<END
AuthType=auth/munge
AuthInfo=socket=$DIR/munge.socket
DbdHost=$(hostname -s)
DbdAddr=127.0.0.1
DbdPort=$port
SlurmUser=$user
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
PidFile=$DIR/slurmdbd.pid
LogFile=$DIR/slurmdbd.log
END
    # Only who can enter DIR reaches the socket, so the database needs no password.
    mariadb-install-db --no-defaults --user="$user" --datadir="$DIR/database" --skip-test-db \
        --auth-root-authentication-method=normal > "$DIR/mariadb.log" 2>&1
    mariadbd --no-defaults --user="$user" --datadir="$DIR/database" --socket="$DIR/mariadb.socket" --skip-networking \
        --pid-file="$DIR/mariadbd.pid" --innodb-flush-log-at-trx-commit=0 >> "$DIR/mariadb.log" 2>&1 < /dev/null &
    wait_for test -S "$DIR/mariadb.socket"
    MYSQL_UNIX_PORT=$DIR/mariadb.socket slurmdbd
    wait_for add_cluster
}

wait_for() {  # COMMAND..., until it succeeds
    for _ in $(seq 100); do
        if "$@"; then return; fi
        sleep 0.1
    done
    tail -n 5 "$DIR"/*.log >&2
    stop
    die "in vain: $*"
}

add_cluster() { sacctmgr -i add cluster local > /dev/null 2>&1; }

node_is_idle() { [ "$(sinfo -h -o %T 2> /dev/null | head -1)" = idle ]; }

start() {
    need "slurm-wlm munge" munged slurmctld slurmd sbatch
    if [ "$ACCOUNTING" = accounting ]; then need "mariadb-server slurmdbd" mariadbd mariadb-install-db slurmdbd; fi
    if [ -z "$DIR" ]; then DIR=$(mktemp -d "${TMPDIR:-/tmp}/local-slurm.XXXXXX"); fi
    mkdir -p "$DIR/state" "$DIR/spool"
    DIR=$(cd "$DIR" && pwd)
    chmod 700 "$DIR"
    write_config
    export SLURM_CONF=$DIR/slurm.conf
    (umask 077 && head -c 128 /dev/urandom > "$DIR/munge.key")
    munged --force --key-file="$DIR/munge.key" --socket="$DIR/munge.socket" --pid-file="$DIR/munged.pid" \
        --log-file="$DIR/munged.log" --seed-file="$DIR/munge.seed"
    if [ "$ACCOUNTING" = accounting ]; then start_accounting; fi
    slurmctld -c
    slurmd -c
    wait_for node_is_idle
    echo "export SLURM_CONF=$SLURM_CONF"
}

end() {  # the daemon with this name, and wait until it is gone, or only waits for its parent to notice
    local pid
    pid=$(cat "$DIR/$1.pid" 2> /dev/null) || return 0
    kill "$pid" 2> /dev/null || return 0
    for _ in $(seq 100); do
        if ! kill -0 "$pid" 2> /dev/null || grep -qs '^State:.Z' "/proc/$pid/status"; then return 0; fi
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
    for daemon in slurmd slurmctld slurmdbd mariadbd munged; do end "$daemon"; done
    rm -rf "$DIR"
}

DIR=${2:-} ACCOUNTING=${3:-}
case "${1:-}" in
    start) start ;;
    status) [ -n "$DIR" ] || die "give the directory"; SLURM_CONF=$DIR/slurm.conf sinfo; SLURM_CONF=$DIR/slurm.conf squeue ;;
    stop) [ -n "$DIR" ] || die "give the directory"; stop ;;
    *) die "usage: scripts/local_slurm.sh start [DIR [accounting]] | status DIR | stop DIR" ;;
esac
