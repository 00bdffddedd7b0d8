"""bursts-v1 in SimPy: README.md has the rules.

The cores are a resource of as many places, first come first served; a process for each task and one for the governor.
SimPy knows neither clocks nor watts: the governor interrupts whoever executes when the P-state changes, so that what is
left of the burst is timed anew, and energy is added up here.
"""

import argparse
import json
import time
from importlib.metadata import version

import simpy

GOVERNOR_PERIOD_S = 0.010
MACHINE_WATTS = 10.0
# Relative speeds, fastest first: a P-state is an index.
SPEEDS = (1.0, 0.85, 0.70, 0.55, 0.40)
BUSY_CORE_WATTS = tuple(10.0 * speed**3 + 2.0 for speed in SPEEDS)
WORD = (1 << 64) - 1


class Random:
    """xorshift64*, its first eight draws thrown away."""

    def __init__(self, seed):
        self.state = seed
        for _ in range(8):
            self.unit()

    def unit(self):
        state = self.state
        state ^= state >> 12
        state ^= (state << 25) & WORD
        state ^= state >> 27
        self.state = state
        return (((state * 2685821657736338717) & WORD) >> 11) / 9007199254740992.0

    def between(self, low, high):
        return low + self.unit() * (high - low)


class Job:
    """The machine, what is under way on it, and the counts."""

    def __init__(self, env, cpus):
        self.env = env
        self.cpus = cpus
        self.cores = simpy.Resource(env, cpus)
        self.executing = set()
        self.pstate = 0
        self.bursts = 0
        self.ticks = 0
        self.busy_core_s = 0.0
        self.busy_core_j = 0.0
        self.accounted = 0.0

    def account(self):
        """Adds up busy cores' time and energy until now; to be called before either changes."""
        core_s = len(self.executing) * (self.env.now - self.accounted)
        self.busy_core_s += core_s
        self.busy_core_j += core_s * BUSY_CORE_WATTS[self.pstate]
        self.accounted = self.env.now

    def joules(self):
        self.account()
        return self.busy_core_j + MACHINE_WATTS * self.env.now

    def task(self, seed):
        env = self.env
        random = Random(seed)
        while True:
            self.bursts += 1
            left_s = random.between(0.0002, 0.002)  # at full speed
            with self.cores.request() as place:
                yield place
                self.account()
                self.executing.add(env.active_process)
                while left_s > 0.0:
                    since, speed = env.now, SPEEDS[self.pstate]
                    try:
                        yield env.timeout(left_s / speed)
                        left_s = 0.0
                    except simpy.Interrupt:
                        left_s -= (env.now - since) * speed
                self.account()
                self.executing.remove(env.active_process)
            yield env.timeout(random.between(0.001, 0.010))

    def govern(self):
        env = self.env
        while True:
            # To the clock's next multiple: a sum of sleeps would drift.
            yield env.timeout((self.ticks + 1) * GOVERNOR_PERIOD_S - env.now)
            self.ticks += 1
            self.account()
            load = self.busy_core_s / (self.cpus * GOVERNOR_PERIOD_S)
            self.busy_core_s = 0.0
            pstate = wanted(load)
            if pstate != self.pstate:
                self.pstate = pstate
                for process in self.executing:
                    process.interrupt()


def wanted(load):
    if load > 0.8:
        return 0
    return max((p for p, speed in enumerate(SPEEDS) if speed >= load * 1.25), default=0)


def positive(kind):
    def parse(text):
        value = kind(text)
        if value <= 0:
            raise argparse.ArgumentTypeError(f"{text}: expected a positive number")
        return value

    return parse


def main():
    parser = argparse.ArgumentParser(description="bursts-v1 in SimPy")
    parser.add_argument("--cpus", type=positive(int), default=4)
    parser.add_argument("--tasks", type=positive(int), default=8)
    parser.add_argument("--seconds", type=positive(float), default=100.0)
    parser.add_argument("--seed", type=positive(int), default=1)
    args = parser.parse_args()

    env = simpy.Environment()
    job = Job(env, args.cpus)
    for task in range(args.tasks):
        env.process(job.task(args.seed + task))
    env.process(job.govern())
    start = time.perf_counter()
    env.run(until=args.seconds)
    joules = job.joules()
    wall_s = time.perf_counter() - start

    events = 2 * job.bursts + job.ticks
    result = {
        "peer": "simpy",
        "version": version("simpy"),
        "shape": {"cpus": args.cpus, "tasks": args.tasks, "seconds": args.seconds},
        "wall_s": round(wall_s, 6),
        "bursts": job.bursts,
        "ticks": job.ticks,
        "events": events,
        "events_per_s": round(events / wall_s, 1),
        "joules": round(joules, 3),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
