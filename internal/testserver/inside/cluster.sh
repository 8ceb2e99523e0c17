#!/bin/sh
# Starts a Redis Cluster node on each port that is an argument. A client's port is its own outside of the container, too;
# the bus needs none there. Epochs that differ from the beginning need not be sorted out by collisions.
bus=11000
for port; do
    bus=$((bus + 1))
    sh /node "$port" --cluster-enabled yes --cluster-port "$bus" --cluster-node-timeout 5000 \
        --cluster-announce-ip 127.0.0.1 --cluster-announce-port "$port" --cluster-announce-bus-port "$bus" &
done
at() { redis-cli -p "$@"; } # at PORT COMMAND...
n=0
for port; do
    until at "$port" ping; do sleep 0.05; done
    [ "$n" -ge 3 ] || at "$port" cluster addslotsrange $((16384 * n / 3)) $((16384 * (n + 1) / 3 - 1))
    n=$((n + 1)) bus=11000
    at "$port" cluster set-config-epoch "$n"
    for other; do
        bus=$((bus + 1))
        [ "$other" = "$port" ] && break
        at "$port" cluster meet 127.0.0.1 "$other" "$bus"
    done
done
for pair in "$1 $4" "$2 $5" "$3 $6"; do
    # shellcheck disable=SC2086 # two words
    set -- $pair
    until at "$2" cluster replicate "$(at "$1" cluster myid)" | grep OK; do sleep 0.05; done # when the two have met
done
wait
