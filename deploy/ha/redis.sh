#!/bin/sh
# redis.sh COMMAND...: starts a Redis as a replica of the master that the Sentinels name; of redis1 if none answers, as
# at the very first start. So a master that comes back does not pretend to be one for the seconds until a Sentinel sees it.
set -eu

name=$(hostname) master=''
for sentinel in sentinel1 sentinel2 sentinel3; do
    master=$(timeout 2 redis-cli -h "$sentinel" -p 26379 sentinel get-master-addr-by-name main 2>/dev/null | head -n 1)
    if [ -n "$master" ]; then break; fi
done
: "${master:=redis1}"
if [ "$master" != "$name" ]; then set -- "$@" --replicaof "$master" 6379; fi
exec "$@" --dir /tmp --replica-announce-ip "$name" --repl-diskless-sync-delay 0 --protected-mode no
