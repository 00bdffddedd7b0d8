"""Text of ftrace as Perfetto's own messages: as_perfetto.py TEXT OUT [compact] [packed] [late].

Needs the packages `perfetto` and `protobuf` (scripts/perfetto.sh installs them). TEXT is tracefs's `trace` or what
`trace-cmd report -t -l` prints. `compact`: switches and wakings as columns; `packed`: packets in packets, by zlib; `late`: the
bundles of CPU 1 begin in the middle, as in a ring, and nothing is woken before.
"""
import re
import sys
import zlib

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

STATES = {"R": 0, "S": 1, "D": 2, "T": 4, "t": 8, "X": 16, "Z": 32, "I": 128, "K": 128, "W": 128}
HEADS = [
    re.compile(r"^ *(.{1,16})-(\d+) +\[(\d+)\] (\S+) +(\d+)\.(\d+): (\w+): +(.*)$"),
    re.compile(r"^ *(.{1,8})-(\d+) +(\d+)([^\d ]\S+) +(\d+)\.(\d+): (\w+): +(.*)$"),
]
SHORT = re.compile(r"^(.*):(\d+) \[(\d+)\] (\S+) ==> (.*):(\d+) \[(\d+)\]$")
LONG = re.compile(r"^prev_comm=(.*) prev_pid=(\d+) prev_prio=(\d+) prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+) next_prio=(\d+)$")
WAKE = re.compile(r"^comm=(.*) pid=(\d+) prio=(\d+) target_cpu=(\d+)$")


def events(text):
    for line in text.splitlines():
        found = next((m for m in (head.match(line) for head in HEADS) if m), None)
        if not found:
            continue
        _, tid, cpu, flags, s, rest, name, fields = found.groups()
        level = flags[2]
        bits = {"h": 8, "H": 24, "s": 16}.get(level, 0) | (1 if flags[0] == "d" else 0)
        yield int(s) * 10**9 + int(rest.ljust(9, "0")), int(cpu), int(tid), bits, name, fields


def main():
    given, out, *how = sys.argv[1:]
    every = list(events(open(given).read()))
    if "late" in how:
        middle = (every[0][0] + every[-1][0]) // 2
        every = [e for e in every if e[0] >= middle or e[1] != 1 and e[4] != "sched_waking"]
    trace = pb.Trace()
    cpus = 1 + max(e[1] for e in every)
    trace.packet.add().system_info.num_cpus = cpus
    trace.packet.add().cpu_info.cpus.add().processor = "Made up"
    # A bundle of one CPU, then one of the other, in neither's order.
    for at in range(0, len(every), 100):
        for cpu in reversed(range(cpus)):
            own = [e for e in every[at : at + 100] if e[1] == cpu]
            if not own:
                continue
            bundle = trace.packet.add().ftrace_events
            bundle.cpu = cpu
            before = [e[0] for e in every[:at] if e[1] == cpu]
            bundle.previous_bundle_end_timestamp = before[-1] if before else middle if "late" in how and cpu == 1 else 1
            columns, last = bundle.compact_sched, {"switch": 0, "waking": 0}

            def intern(name):
                if name not in columns.intern_table:
                    columns.intern_table.append(name)
                return list(columns.intern_table).index(name)

            for time, _, tid, bits, name, fields in own:
                switch = (SHORT.match(fields) or LONG.match(fields)) if name == "sched_switch" else None
                wake = WAKE.match(fields) if name == "sched_waking" else None
                if "compact" in how and switch:
                    columns.switch_timestamp.append(time - last["switch"])
                    last["switch"] = time
                    columns.switch_prev_state.append(STATES[switch[4][0]])
                    columns.switch_next_pid.append(int(switch[6]))
                    columns.switch_next_prio.append(int(switch[7]))
                    columns.switch_next_comm_index.append(intern(switch[5]))
                    continue
                if "compact" in how and wake:
                    columns.waking_timestamp.append(time - last["waking"])
                    last["waking"] = time
                    columns.waking_pid.append(int(wake[2]))
                    columns.waking_prio.append(int(wake[3]))
                    columns.waking_target_cpu.append(int(wake[4]))
                    columns.waking_comm_index.append(intern(wake[1]))
                    columns.waking_common_flags.append(bits)
                    continue
                event = bundle.event.add(timestamp=time, pid=tid, common_flags=bits)
                if switch:
                    event.sched_switch.prev_comm, event.sched_switch.prev_pid = switch[1], int(switch[2])
                    event.sched_switch.prev_prio, event.sched_switch.prev_state = int(switch[3]), STATES[switch[4][0]]
                    event.sched_switch.next_comm, event.sched_switch.next_pid = switch[5], int(switch[6])
                    event.sched_switch.next_prio = int(switch[7])
                elif name in ("sched_waking", "sched_wakeup_new", "sched_wakeup"):
                    wake = WAKE.match(fields) or re.match(r"^(.*):(\d+) \[(\d+)\].* CPU:(\d+)$", fields)
                    message = getattr(event, name)
                    message.comm, message.pid, message.prio, message.target_cpu = wake[1], int(wake[2]), int(wake[3]), int(wake[4])
                else:
                    message = getattr(event, name)
                    for key, value in re.findall(r"(\w+)=(\d+)", fields):
                        setattr(message, key, int(value))
    if "packed" in how:
        outer = pb.Trace()
        for at in range(0, len(trace.packet), 3):
            outer.packet.add().compressed_packets = zlib.compress(pb.Trace(packet=trace.packet[at : at + 3]).SerializeToString())
        trace = outer
    open(out, "wb").write(trace.SerializeToString())


main()
