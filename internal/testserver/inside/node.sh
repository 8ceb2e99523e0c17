#!/bin/sh
# Starts one Redis, on the port that is the first argument, with further options.
port=$1
shift
mkdir -p "/tmp/$port"
exec redis-server --port "$port" --dir "/tmp/$port" --pidfile "/tmp/$port/pid" --protected-mode no \
    --save '' --appendonly no --repl-diskless-sync-delay 0 "$@"
