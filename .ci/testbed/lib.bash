# Shared by the testbed scripts: progress lines, the cache folder, the Debian mirror. Sourced, not run.

# The tools that are built; outside the repository so that a fresh checkout finds them again.
# shellcheck disable=SC2034 # for the scripts that source this
cache=${SHOP_TESTBED_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/shop-testbed}
export SHOP_TESTBED_STARTED=${SHOP_TESTBED_STARTED:-$(date +%s)}

# say prints one progress line with the seconds since the first script started. To stderr: stdout is for results.
say() { printf '[testbed %4ds] %s\n' $(($(date +%s) - SHOP_TESTBED_STARTED)) "$*" >&2; }

# shout is say for what must not be overlooked in a long log.
shout() { say "!!!!!!!! $* !!!!!!!!"; }

# quietly runs a command and shows its output only when it fails.
quietly() {
    local log status=0
    log=$(mktemp)
    "$@" >"$log" 2>&1 </dev/null || status=$?
    if ((status)); then
        say "failed with status $status: $*"
        tail -n 60 "$log" >&2
    fi
    rm -f "$log"
    return "$status"
}

# docker is the client of Debian's docker.io where it is installed: another one earlier on PATH may lack BuildKit.
docker() {
    if [[ -x /usr/bin/docker ]]; then /usr/bin/docker "$@"; else command docker "$@"; fi
}

# debian_mirror prints the mirror this machine's own apt uses, so that no host is written down here.
# Empty where apt has none: debootstrap then takes its default.
debian_mirror() {
    # shellcheck disable=SC2016 # the $(...) are apt's placeholders
    apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }'
}

image_exists() { docker image inspect "$1" >/dev/null 2>&1; }
