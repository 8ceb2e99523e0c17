#!/bin/sh
# Starts a Redis master, two replicas of it, and three Sentinels, on the ports that are the arguments. A Sentinel that
# finds the replicas at its first look need not wait ten seconds for its second. One whose timer is two seconds late, as
# on a busy machine, would replace no master for the next 30 seconds, but for tilt-trigger. An election that came to
# nothing is held again after twice the failover-timeout.
sh /node "$1" --replica-announce-ip 127.0.0.1 --replica-announce-port "$1" &
for port in "$2" "$3"; do
    sh /node "$port" --replica-announce-ip 127.0.0.1 --replica-announce-port "$port" --replicaof 127.0.0.1 "$1" &
done
until redis-cli -p "$1" info replication | grep -q connected_slaves:2; do sleep 0.05; done
for port in "$4" "$5" "$6"; do
    mkdir -p "/tmp/$port"
    cat >"/tmp/$port/sentinel.conf" <<CONF
port $port
dir /tmp/$port
protected-mode no
sentinel announce-ip 127.0.0.1
sentinel announce-port $port
sentinel monitor main 127.0.0.1 $1 2
sentinel down-after-milliseconds main 30000
sentinel failover-timeout main 1000
CONF
    redis-server "/tmp/$port/sentinel.conf" --sentinel &
    until redis-cli -p "$port" sentinel debug tilt-trigger 60000; do sleep 0.05; done
done
wait
