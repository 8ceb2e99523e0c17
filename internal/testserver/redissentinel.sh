# Starts a Redis master, two replicas of it, and three Sentinels, on the ports that are the arguments.
master=$1
started=0
for port; do
    started=$((started + 1))
    mkdir -p "/tmp/$port"
    if [ "$started" -le 3 ]; then
        replicaof=''
        [ "$port" = "$master" ] || replicaof="--replicaof 127.0.0.1 $master"
        # shellcheck disable=SC2086 # several words
        redis-server --port "$port" --dir "/tmp/$port" --pidfile "/tmp/$port/pid" --protected-mode no \
            --save '' --appendonly no --repl-diskless-sync-delay 0 \
            --replica-announce-ip 127.0.0.1 --replica-announce-port "$port" $replicaof &
        continue
    fi
    # A Sentinel that finds the replicas at its first look need not wait ten seconds for its second.
    until redis-cli -p "$master" info replication | grep -q connected_slaves:2; do sleep 0.05; done
    # A master that is only short of CPU is left in place: KillSentinelMaster makes the Sentinels hurry.
    # An election that came to nothing is held again after twice the failover-timeout.
    cat >"/tmp/$port/sentinel.conf" <<CONF
port $port
dir /tmp/$port
pidfile /tmp/$port/pid
protected-mode no
sentinel announce-ip 127.0.0.1
sentinel announce-port $port
sentinel monitor main 127.0.0.1 $master 2
sentinel down-after-milliseconds main 30000
sentinel failover-timeout main 1000
CONF
    redis-server "/tmp/$port/sentinel.conf" --sentinel &
done
wait
