# What every scenario may use.
say() { # say JSON: one line of results
    echo "$1" >/dev/ttyS1
}
pass() { # pass NAME: a check that held
    say "{\"check\":\"$1\"}"
}
fail() { # fail WHY: the run has failed
    say "{\"fail\":\"$(echo "$1" | tr '"\n' "' ")\"}"
    exit 1
}
expect() { # expect NAME WANTED FOUND
    [ "$2" = "$3" ] || fail "$1: expected $2, found $3"
    pass "$1"
}
refused() { # refused NAME COMMAND...: the command must fail
    name=$1
    shift
    if "$@" 2>/dev/null; then fail "$name: should have been refused"; fi
    pass "$name"
}
load() { # load MODULE...: those that are not built in
    for module; do
        [ -f "/mods/$module.ko" ] || continue
        grep -q "^$module " /proc/modules || insmod "/mods/$module.ko"
    done
}
CPU=/sys/devices/system/cpu
governor() { # governor NAME, on every policy
    for policy in $CPU/cpufreq/policy*; do echo "$1" >"$policy/scaling_governor"; done
}
