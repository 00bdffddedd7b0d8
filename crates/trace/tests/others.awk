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
    if (NR == 1) began = now
}

/sched_process_fork:/ && work[number("pid")] { work[number("child_pid")] = 1 }

BEGIN { work[command] = 1 }

# Whoever runs until a switch has run since the one before it on that CPU, or since the recording began.
function ran(task, busy) {
    if (task <= 0) return
    all += busy
    if (!work[task] && !index(recorder, " " task " ") && !index(kernel, " " task " ")) others += busy
}

/sched_switch:/ {
    ran(number("prev_pid"), now - ((cpu in since) ? since[cpu] : began))
    since[cpu] = now
    on[cpu] = number("next_pid")
}

END {
    for (cpu in on) ran(on[cpu], now - since[cpu])
    printf "%.6f %.6f\n", others, all
}
