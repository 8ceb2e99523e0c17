#!/bin/sh
# redis.sh COMMAND...: starts a Redis as a replica of the master that two Sentinels name, or of redis1 if they name no master
# for a while. So an old master that comes back does not act as a master for the seconds until a Sentinel sees it.
set -eu

name=$(hostname) master=''
for _ in 1 2 3 4 5 6 7 8 9 10; do
    master=$(
        for sentinel in sentinel1 sentinel2 sentinel3; do
            timeout 2 redis-cli -h "$sentinel" -p 26379 sentinel get-master-addr-by-name main 2>/dev/null | head -n 1
        done | sort | uniq -d
    )
    if [ -n "$master" ]; then break; fi
    sleep 0.5
done
: "${master:=redis1}"
if [ "$master" != "$name" ]; then set -- "$@" --replicaof "$master" 6379; fi
exec "$@" --dir /tmp --replica-announce-ip "$name" --repl-diskless-sync-delay 0 --protected-mode no
