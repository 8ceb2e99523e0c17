# Starts a Redis Cluster node on each port that is an argument; they do not know each other yet.
# A client's port is its own outside of the container, too. The bus needs none there.
bus=1000
for port; do
    bus=$((bus + 1))
    mkdir -p "/tmp/$port"
    redis-server --port "$port" --dir "/tmp/$port" --pidfile "/tmp/$port/pid" --protected-mode no \
        --save '' --appendonly no --repl-diskless-sync-delay 0 \
        --cluster-enabled yes --cluster-port "1$bus" --cluster-node-timeout 5000 \
        --cluster-announce-ip 127.0.0.1 --cluster-announce-port "$port" --cluster-announce-bus-port "1$bus" &
done
wait
