#!/usr/bin/env bash
# group.sh watch: forms the MySQL group of compose.ha.yaml and keeps it whole. Every two seconds it asks each member for its
# state.
#
#   - A member sees a majority: those that are out of the group are told to join it.
#   - No member does, and all three answer: the member that has every transaction of the others begins the group again.
#   - No member does, and one is missing: the script waits. The missing member may have orders that were acknowledged.
#
# Members never begin or join a group by themselves. So once all three have said that they are out of the group, there is no
# group anywhere, and the new group cannot become a second one.
#
# group.sh without NAME...: an operator states that these members and their data are lost for good. The others may then
# begin a group without them. An order that only the lost members had is lost.
set -euo pipefail

members=(mysql1 mysql2 mysql3)
group=6f1d2f3c-4f6e-4d2b-9c1a-3a5b7c9d1e2f # also in mysql.cnf; the group numbers its transactions under this name
lost=/tmp/lost                             # a file for each member that an operator has given up
ready=/tmp/ready                           # exists while all members are online, for the health check
export MYSQL_PWD=$MYSQL_ROOT_PASSWORD
# The password with which members copy from each other: at most 32 characters.
copy_password=$(sha256sum <<<"group $MYSQL_ROOT_PASSWORD")
copy_password=${copy_password:0:32}

declare -A state seat # of each member: what it says about itself; whether it is in the group, joining, out of it, or missing
primaries=()          # members that say that they are the primary
provided=''           # set once the group has what shops and new members need

watch() {
    local m absent
    while true; do
        absent=()
        look
        for m in "${members[@]}"; do
            if [[ ${seat[$m]} == missing && ! -e $lost/$m ]]; then absent+=("$m"); fi
        done
        if [[ " ${seat[*]} " == *' in '* ]]; then
            complete
        elif [[ " ${seat[*]} " == *' joining '* ]]; then
            say 'no member is online yet, one is recovering' # which ends, in ONLINE or in ERROR
        elif ((${#absent[@]} && SECONDS < 120)); then # no server takes longer to start
            say "waiting for ${absent[*]}: they may be starting"
        elif ((${#absent[@]})); then
            say "no majority; waiting for ${absent[*]}: acknowledged orders may be only there" \
                "(if lost for good: group.sh without ${absent[*]})"
        else
            begin
        fi
        sleep 2
    done
}

# look asks all members.
look() {
    local m answer online=0
    primaries=()
    for m in "${members[@]}"; do
        # State of this member, whether it reaches a majority, and whether it is a primary that takes writes.
        answer=$(ask "$m" "SELECT IFNULL(MAX(IF(MEMBER_ID = @@server_uuid, MEMBER_STATE, NULL)), 'OFFLINE'),
                IF(2 * SUM(MEMBER_STATE <> 'UNREACHABLE') > COUNT(*), 'majority', 'minority'),
                IF(MAX(MEMBER_ID = @@server_uuid AND MEMBER_ROLE = 'PRIMARY') AND NOT @@super_read_only, 'primary', '')
            FROM performance_schema.replication_group_members") || answer=''
        state[$m]=${answer%%$'\t'*}
        case $answer in
        '') seat[$m]=missing ;;
        ONLINE$'\t'majority*) seat[$m]=in ;;
        RECOVERING$'\t'majority*) seat[$m]=joining ;;
        *) seat[$m]=out ;;
        esac
        if [[ ${seat[$m]} == in ]]; then
            online=$((online + 1))
            rm -f "${lost:?}/$m"
            if [[ $answer == *primary ]]; then primaries+=("$m"); fi
        elif [[ -e $lost/$m ]]; then
            online=$((online + 1)) # counts as present: nothing waits for it
        fi
    done
    # A member that has just been replaced may still believe that it is the primary, and online.
    if [[ -n $provided ]] && ((online == ${#members[@]} && ${#primaries[@]} == 1)); then
        touch "$ready"
        say "whole: ${primaries[0]} is the primary"
    else
        rm -f "$ready"
    fi
}

# complete tells the members that are out of the group to join.
complete() {
    local m
    if [[ -z $provided ]] && ((${#primaries[@]} == 1)) && provide "${primaries[0]}"; then provided=yes; fi
    for m in "${members[@]}"; do
        if [[ ${seat[$m]} == out && -n $provided ]]; then
            say "$m is ${state[$m]}: it is told to join"
            join "$m" &
        fi
    done
    wait
}

# provide creates in the group what the shops and new members need.
provide() { # provide PRIMARY
    tell "$1" "CREATE DATABASE IF NOT EXISTS shop;
        CREATE USER IF NOT EXISTS copy@'%' IDENTIFIED BY '$copy_password';
        GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO copy@'%';
        CREATE USER IF NOT EXISTS shop@'%' IDENTIFIED BY $(quoted "$SHOP_MYSQL_PASSWORD");
        GRANT ALL ON shop.* TO shop@'%';
        GRANT SELECT ON performance_schema.replication_group_members TO shop@'%'"
}

join() { # join MEMBER
    prepare "$1" &&
        tell "$1" "STOP GROUP_REPLICATION;
            SET GLOBAL group_replication_bootstrap_group = OFF;
            START GROUP_REPLICATION USER = 'copy', PASSWORD = '$copy_password'"
}

# begin begins a group on the member that has all transactions.
begin() {
    local m other first='' empty=() answer
    declare -A sets
    for m in "${members[@]}"; do
        if [[ ${seat[$m]} == missing ]]; then continue; fi
        # A member in a minority holds on to the old group.
        tell "$m" 'STOP GROUP_REPLICATION' || return 0
    done
    look
    for m in "${members[@]}"; do
        if [[ -e $lost/$m && ${seat[$m]} == missing ]]; then continue; fi
        if [[ ${state[$m]} != OFFLINE ]]; then return 0; fi
        prepare "$m" || return 0
        sets[$m]=$(transactions "$m") || return 0
        if [[ -z ${sets[$m]} && ! -e $lost/$m ]]; then empty+=("$m"); fi
    done
    for m in "${members[@]}"; do
        if [[ -z ${sets[$m]+there} ]]; then continue; fi
        for other in "${!sets[@]}"; do
            answer=$(ask "$m" "SELECT GTID_SUBSET('${sets[$other]}', '${sets[$m]}')") || return 0
            if [[ $answer != 1 ]]; then continue 2; fi
        done
        first=$m
        break
    done
    if [[ -z $first ]]; then
        say "no member has all transactions of the others, an operator has to choose: $(declare -p sets)"
        return 0
    fi
    # The member whose data are gone may have been the primary. Without tables there are no orders.
    if ((${#empty[@]})) && [[ -n ${sets[$first]} ]]; then
        answer=$(ask "$first" "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'shop'") || return 0
        if [[ $answer != 0 ]]; then
            say "no majority, and ${empty[*]} has lost its data: acknowledged orders may have been only there" \
                "(to go on: group.sh without ${empty[*]})"
            return 0
        fi
    fi
    say "no group anywhere: $first, which has all transactions, begins one"
    tell "$first" "SET GLOBAL group_replication_bootstrap_group = ON;
        START GROUP_REPLICATION USER = 'copy', PASSWORD = '$copy_password'" || true
    tell "$first" 'SET GLOBAL group_replication_bootstrap_group = OFF' || true
}

# prepare makes a new server ready to join: read-only outside the group, also after each start, and without the transactions
# that the entrypoint of its image has made. A server that has been in the group before stays as it is.
prepare() { # prepare MEMBER
    local set
    set=$(transactions "$1") || return 1
    if [[ $set == *"$group"* ]]; then return; fi
    tell "$1" 'RESET BINARY LOGS AND GTIDS; SET PERSIST super_read_only = ON'
}

# transactions prints the transactions that a member has executed, or has received and will execute.
transactions() { # transactions MEMBER
    ask "$1" "SELECT REPLACE(GTID_SUBTRACT(CONCAT_WS(',', @@gtid_executed, MAX(RECEIVED_TRANSACTION_SET)), ''), '\n', '')
        FROM performance_schema.replication_connection_status WHERE CHANNEL_NAME = 'group_replication_applier'"
}

# ask prints the answer of a member, or fails after 5 s.
ask() { timeout 5 mysql -h "$1" -u root --connect-timeout=2 -NB <<<"$2" 2>/dev/null; } # ask MEMBER SQL

# tell runs statements on a member, and prints the error if they fail.
tell() { # tell MEMBER SQL
    local error
    error=$(timeout 90 mysql -h "$1" -u root --connect-timeout=2 -NB <<<"$2" 2>&1 >/dev/null) && return
    echo "$1: ${error:-no answer}"
    return 1
}

# say logs a message, unless it repeats the last one.
say() {
    if [[ $* != "${said:-}" ]]; then echo "$*"; fi
    said=$*
}

quoted() { # quoted TEXT: an SQL string literal
    local text=${1//\\/\\\\}
    printf "'%s'" "${text//\'/\'\'}"
}

mkdir -p "$lost"
case ${1:-} in
watch) watch ;;
without)
    shift
    if (($# == 0 || $# >= ${#members[@]})); then
        echo 'group.sh without: want one or two members' >&2
        exit 2
    fi
    for m; do
        if [[ " ${members[*]} " != *" $m "* ]]; then
            echo "$m is none of ${members[*]}" >&2
            exit 2
        fi
        touch "$lost/$m"
    done
    ;;
*)
    echo 'group.sh: want watch, or without NAME...' >&2
    exit 2
    ;;
esac
