"""Holds a trace of `compare --perfetto` against the comparison it was written with (scripts/perfetto.sh)."""

import collections
import json
import re
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
LONGEST_ENTRY_S = 200e-6


def known(message, path="Trace"):
    """No field is unknown to Perfetto's own messages."""
    from google.protobuf import unknown_fields

    unknown = unknown_fields.UnknownFieldSet(message)
    assert len(unknown) == 0, f"{path}: field {unknown[0].field_number} is unknown"
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for one in value if isinstance(value, collections.abc.Sequence) else [value]:
                known(one, f"{path}.{field.name}")


def near(what, got, want, share):
    assert abs(got - want) <= share * max(abs(want), 1e-9), f"{what}: {got} in the trace, {want} in the result"


class Track:
    def __init__(self, descriptor):
        self.name = descriptor.name
        self.parent = descriptor.parent_uuid
        self.events = []

    def slices(self):
        """(begin, end, name) in s; slices of a track neither nest nor overlap."""
        out, opened = [], None
        for at, event in self.events:
            if event.type == BEGIN:
                assert opened is None, f"{self.name}: a slice within a slice at {at}"
                opened = (at, event.name)
            elif event.type == END:
                assert opened is not None, f"{self.name}: an end without a beginning at {at}"
                out.append((opened[0], at, opened[1]))
                opened = None
        assert opened is None, f"{self.name}: a slice that does not end"
        return out

    def counts(self, kind):
        return sum(event.type == kind for _, event in self.events)


def read(path):
    trace = messages.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    tracks = {}
    for packet in trace.packet:
        known(packet)
        if packet.HasField("track_descriptor"):
            uuid = packet.track_descriptor.uuid
            assert uuid not in tracks, f"track {uuid} twice"
            tracks[uuid] = Track(packet.track_descriptor)
        else:
            event = packet.track_event
            tracks[event.track_uuid].events.append((packet.timestamp * 1e-9, event))
    for track in tracks.values():
        times = [at for at, _ in track.events]
        assert times == sorted(times), f"{track.name}: not in order of time"
        assert track.parent == 0 or track.parent in tracks
    return tracks


def idle_until(tracks, end):
    """CPU-seconds in C-states until a time, by state."""
    out = collections.Counter()
    for track in tracks:
        if track.name.endswith("C-state"):
            for begin, stop, name in track.slices():
                out[name] += max(0.0, min(stop, end) - begin)
    return out


def joules_from(power, start, end):
    values = [(at, e.double_counter_value) for at, e in power.events]
    ends = [at for at, _ in values[1:]] + [end]
    return sum(watts * max(0.0, stop - max(at, start)) for (at, watts), stop in zip(values, ends))


def check_policy(tracks, result, comparison):
    name = result["policy"]
    # A replay ends with the window, or with the work where that is later; both count from the work's release.
    end = max(at for t in tracks for at, _ in t.events)
    released = end - max(comparison["window_s"], result["elapsed_s"])
    assert released > -1e-6, f"{name}: ends at {end} s, before the window"
    (power,) = [t for t in tracks if t.name == "power"]
    # Another policy's energy has that of background work added that it does later than the reference.
    if name == comparison["reference"] or comparison["workload"]["background_share"] == 0:
        joules = joules_from(power, released, end)
        near(f"{name}: joules over the window", joules, result["window_energy_j"], 0.01)
    idle = sum(idle_until(tracks, released + result["elapsed_s"]).values())
    told = sum(state["s"] for state in result["idle_residency"])
    # The result books the way into a state as awake, which is at most LONGEST_ENTRY_S a stay.
    stays = sum(t.counts(BEGIN) for t in tracks if t.name.endswith("C-state"))
    most = told * (1 + 1e-6) + stays * LONGEST_ENTRY_S
    assert told * (1 - 1e-6) <= idle <= most, f"{name}: {idle} s idle in the trace, {told} in the result"
    speeds = {e.counter_value for t in tracks if t.name.endswith("speed") for _, e in t.events}
    missing = {speed["khz"] for speed in result["speed_residency"] if speed["s"] > 1e-3} - speeds
    assert not missing, f"{name}: {missing} kHz are not in the trace"


def main(trace, comparison, told):
    tracks = read(trace)
    with open(comparison) as file:
        result = json.load(file)
    with open(told) as file:
        line = next(line for line in file if "Perfetto trace written" in line)
    replays, runs, stays, wakes, _, powers = (int(n) for n in re.findall(r"(\d+) [a-z]", line.split("):")[1]))
    processes = {uuid: t for uuid, t in tracks.items() if t.parent == 0}
    assert len(processes) == replays == len(result["results"])
    of = lambda end, kind: sum(t.counts(kind) for t in tracks.values() if t.name.endswith(end))
    got = (of("task", BEGIN), of("C-state", BEGIN), of("task", INSTANT), of("power", COUNTER))
    assert got == (runs, stays, wakes, powers), f"{got} events in the trace, {(runs, stays, wakes, powers)} told"
    by_name = {result["policy"]: result for result in result["results"]}
    for uuid, process in processes.items():
        mine = [t for t in tracks.values() if t.parent == uuid]
        for track in mine:
            track.slices()
        check_policy(mine, by_name[process.name], result)
    what = f"{result['workload']['name']} on {result['machine']}"
    print(f"perfetto: {what}: {replays} replays, {sum(got)} events as told, joules and C-states as compared")


if __name__ == "__main__":
    main(*sys.argv[1:])
