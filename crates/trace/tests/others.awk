# Other programs' share of the CPU time in what `perf script -F comm,tid,cpu,time,event,trace` prints, summed anew.
# command: the work's first process; recorder, kernel: thread numbers with blanks around each.

function number(key,    at) {
    at = match($0, " " key "=[0-9]+")
    return at ? substr($0, at + length(key) + 2, RLENGTH - length(key) - 2) + 0 : -1
}

{
    match($0, /\[[0-9]+\]/)
    cpu = substr($0, RSTART + 1, RLENGTH - 2) + 0
    match($0, / [0-9]+\.[0-9]+:/)
    now = substr($0, RSTART + 1, RLENGTH - 2) + 0
}

/sched_process_fork:/ && work[number("pid")] { work[number("child_pid")] = 1 }

BEGIN { work[command] = 1 }

/sched_switch:/ {
    was = number("prev_pid")
    if ((cpu in since) && was > 0) {
        busy = now - since[cpu]
        all += busy
        if (!work[was] && !index(recorder, " " was " ") && !index(kernel, " " was " ")) others += busy
    }
    since[cpu] = now
}

END { printf "%.6f %.6f\n", others, all }
