//! Workloads by name and parameters: `periodic:hz=347,duty=0.75,threads=1`.
//!
//! A generator writes the text of a workload file ([`super::file`]) and has it read, so that whatever it makes can be written by
//! hand as well. Lengths of work are at the clock `khz`, as in any workload file. A value is a number, or an interval
//! `LOW..HIGH` where the parameter takes one: of `memory` an interval that a comparison draws from, of a length the range of
//! its rounds.
//!
//! | generator | what it stands for |
//! |---|---|
//! | `program` | one program, or equal ones side by side, that computes and ends |
//! | `parallel` | a program with a serial share, then workers behind a barrier, some times over |
//! | `periodic` | threads that wake at a rate and work for a share of the period |
//! | `ring` | a token that goes round a ring of tasks, with work at each hop |
//! | `pairs` | clients that each wait for the answer of their server (tbench, netperf) |
//! | `forks` | shells that each start short programs one after the other (a test suite) |
//! | `build` | a build by so many jobs, with a link at its end |
//! | `requests` | requests that arrive whatever the load, through a chain of services |
//! | `video` | frames decoded and shown at a rate |
//! | `idle` | a machine at rest, with timers now and then |

use super::Workload;
use super::file::{WorkloadError, parse};
use std::collections::BTreeMap;
use std::fmt::Write;
use wattwise_figure::suggest;

/// Why a generator cannot be used, in one line.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// A parameter that is wrong.
    #[error("{given}: {problem}")]
    Parameter {
        /// What was written.
        given: String,
        /// What is wrong with it, and what was expected.
        problem: String,
    },
    /// What it makes is no workload.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
}

/// A parameter of a generator.
pub struct Parameter {
    /// Its key.
    pub name: &'static str,
    /// What it is in; empty for a number.
    pub unit: &'static str,
    /// Its value where none is given, as it would be written.
    pub default: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// What it may be: the least and the most.
    pub range: [f64; 2],
    /// Whether it counts something.
    pub whole: bool,
}

/// A generator: the line that the table holds.
pub struct Generator {
    /// The word before the parameters.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Its own parameters; [`COMMON`] ones are taken by all.
    pub parameters: &'static [Parameter],
    tasks: fn(&Values) -> String,
}

const fn parameter(
    name: &'static str,
    unit: &'static str,
    default: &'static str,
    help: &'static str,
) -> Parameter {
    Parameter { name, unit, default, help, range: [0.0, 1e12], whole: false }
}

/// How many of something.
const fn count(name: &'static str, default: &'static str, help: &'static str) -> Parameter {
    Parameter { range: [1.0, 1e9], whole: true, ..parameter(name, "", default, help) }
}

/// 0 or 1.
const fn switch(name: &'static str, help: &'static str) -> Parameter {
    Parameter { range: [0.0, 1.0], whole: true, ..parameter(name, "", "0", help) }
}

const fn share(name: &'static str, default: &'static str, help: &'static str) -> Parameter {
    Parameter { range: [0.0, 1.0], ..parameter(name, "", default, help) }
}

/// How often something happens.
const fn rate(
    name: &'static str,
    unit: &'static str,
    default: &'static str,
    help: &'static str,
) -> Parameter {
    Parameter { range: [0.001, 1e6], ..parameter(name, unit, default, help) }
}

/// A sender goes on when it has woken the receiver: it returns from the system call and comes to its own wait. Measured on Linux 6.18
/// with both on one CPU and none preempted (`SCHED_BATCH`): 0.34 and 0.36 of the work of tbench's client and server over
/// loopback, 0.39 and 0.15 of that of pgbench's (`-S`), some 0.4 of that of `perf bench sched pipe` (0.55 with the cost of tracing so short turns).
const AFTER: &str = "share of that work that follows the wake-up of the other";

/// Parameters that every generator takes.
pub const COMMON: &[Parameter] = &[
    Parameter {
        range: [1000.0, 1e8],
        ..parameter("khz", "kHz", "3000000", "the clock at which lengths of work are told")
    },
    share("memory", "0..0.3", "share of the work's time that waits for memory, or an interval"),
    Parameter {
        range: [0.01, 100.0],
        ..parameter(
            "ipc",
            "",
            "1",
            "work done a cycle, of what the lengths are told for, or an interval to draw from",
        )
    },
    parameter("beside", "", "0", "CPUs' worth of other work at that clock, which goes on all the while"),
    parameter(
        CPUS,
        "",
        "all",
        "the CPUs that the work may use, as by taskset: 0-7, 0-14:2 (every second), 0-3+8-11",
    ),
];

/// The parameter that is no number.
const CPUS: &str = "cpus";
/// CPUs that it may name: more than any machine has.
const MOST_CPUS: usize = 2048;

/// Every generator.
pub static ALL: &[Generator] = &[
    Generator {
        name: "program",
        summary: "programs that compute and end",
        parameters: &[
            parameter("s", "s", "1", "work of each"),
            count("threads", "1", "how many side by side"),
        ],
        tasks: |v| task("program", v.count("threads"), "rounds = 1", &[run(v.s("s"))]),
    },
    Generator {
        name: "parallel",
        summary: "a serial part, then workers behind a barrier, some times over",
        parameters: &[
            parameter("s", "s", "1", "work of all threads together"),
            count("threads", "4", "workers"),
            share("serial", "0.02", "share of the work that only one does"),
            count("phases", "10", "barriers"),
            parameter(
                "parts",
                "",
                "0",
                "parts that the workers take in turn, with no serial part; 0: each has its share",
            ),
        ],
        tasks: parallel,
    },
    Generator {
        name: "periodic",
        summary: "threads that wake at a rate and work for a share of the period",
        parameters: &[
            rate("hz", "Hz", "100", "wake-ups of each thread a second"),
            share("duty", "0.1", "share of the period that the work takes"),
            count("threads", "1", "threads, each at a moment of its own"),
            parameter("s", "s", "5", "for how long"),
        ],
        tasks: periodic,
    },
    Generator {
        name: "ring",
        summary: "a token that goes round a ring of tasks",
        parameters: &[
            count("tasks", "6", "tasks in the ring"),
            parameter("us", "us", "2", "work at each hop"),
            share("after", "0.4", AFTER),
            count("rounds", "20000", "times round"),
            count("rings", "1", "rings side by side"),
            switch("bound", "1: each task is bound to a core of its own"),
        ],
        tasks: ring,
    },
    Generator {
        name: "pairs",
        summary: "clients that each wait for the answer of their server",
        parameters: &[
            count("pairs", "1", "clients, each with a server"),
            parameter("us", "us", "20..60", "work of each for an answer"),
            parameter("server", "us", "0", "work of the server, where it is another; 0: the same"),
            share("after", "0.35", AFTER),
            count("rounds", "10000", "answers of each pair"),
        ],
        tasks: |v| {
            let (n, rounds) = (v.count("pairs"), v.count("rounds"));
            let answer = if v.number("server") > 0.0 { "server" } else { "us" };
            let client = [turn(v, "us", "server"), vec![block()]].concat();
            let server = [vec![block()], turn(v, answer, "client")].concat();
            task("client", n, &format!("rounds = {rounds}"), &client)
                + &task("server", n, &format!("rounds = {rounds}"), &server)
        },
    },
    Generator {
        name: "stream",
        summary: "senders that never wait for their receivers",
        parameters: &[
            count("streams", "1", "senders, each with a receiver"),
            parameter("us", "us", "4..6", "work of each for a message"),
            count("messages", "100000", "messages of each stream"),
        ],
        tasks: |v| {
            let (n, us, messages) = (v.count("streams"), v.length("us"), v.count("messages"));
            let work = format!("{{ run_us = {us} }}");
            task("sender", n, &format!("rounds = {messages}"), &[work.clone(), wake("receiver")])
                + &task("receiver", n, &format!("rounds = {messages}"), &[block(), work])
        },
    },
    Generator {
        name: "forks",
        summary: "a shell that starts short programs one after the other",
        parameters: &[
            count("programs", "400", "programs"),
            parameter("us", "us", "500..8000", "work of each"),
            parameter("shell", "us", "200", "work of the shell for each"),
            count("shells", "1", "shells side by side that share the programs (make test -j)"),
        ],
        tasks: forks,
    },
    Generator {
        name: "build",
        summary: "a build by so many jobs, with a link at its end",
        parameters: &[
            count("jobs", "4", "compilers side by side"),
            count("files", "80", "files"),
            parameter("us", "us", "20000..400000", "work for each file"),
            parameter("io", "us", "50..3000", "waiting for the disk before each"),
        ],
        tasks: |v| {
            let take = [
                "{ take = \"file\" }".to_owned(),
                format!("{{ io_us = {} }}", v.spread("io")),
                format!("{{ run_us = {} }}", v.spread("us")),
                wake("ld"),
            ];
            let link = [block(), "{ run_us = [800, 3000] }".to_owned()];
            format!("[jobs]\nfile = {}\n\n", v.count("files"))
                + &task("cc", v.count("jobs"), "", &take)
                + &task("ld", 1, &format!("rounds = {}", v.count("files")), &link)
        },
    },
    Generator {
        name: "requests",
        summary: "requests that arrive whatever the load, through a chain of services",
        parameters: &[
            rate("rate", "1/s", "100", "requests a second"),
            count("services", "4", "services that each request goes through"),
            parameter("us", "us", "100..400", "work of each service for a request"),
            count("copies", "4", "chains side by side that share the requests"),
            parameter("s", "s", "5", "for how long"),
        ],
        tasks: requests,
    },
    Generator {
        name: "video",
        summary: "frames decoded and shown at a rate",
        parameters: &[
            rate("fps", "1/s", "30", "frames a second"),
            parameter("decode", "us", "4000..12000", "work to decode a frame"),
            parameter("show", "us", "800..2500", "work to show it"),
            parameter("s", "s", "5", "for how long"),
        ],
        tasks: |v| {
            let decode = [
                period(1e6 / v.number("fps")),
                format!("{{ run_us = {} }}", v.length("decode")),
                wake("show"),
            ];
            let show = [block(), format!("{{ run_us = {} }}", v.length("show"))];
            let sound = [period(1e6 / 47.0), "{ run_us = [50, 200] }".to_owned()];
            let span = format!("rounds_within_s = {}", v.number("s"));
            task("decoder", 1, &span, &decode)
                + &task("show", 1, "", &show)
                + &task("sound", 1, &span, &sound)
        },
    },
    Generator {
        name: "idle",
        summary: "a machine at rest, with timers now and then",
        parameters: &[
            rate("hz", "Hz", "20", "wake-ups of all timers a second"),
            parameter("us", "us", "20..200", "work of each"),
            parameter("s", "s", "10", "for how long"),
        ],
        tasks: |v| {
            let mean = 4e6 / v.number("hz");
            let steps = [
                format!("{{ sleep_us = {{ log = [{}, {}] }} }}", mean * 0.2, mean * 2.5),
                format!("{{ run_us = {} }}", v.spread("us")),
            ];
            task("timer", 4, &format!("rounds_within_s = {}", v.number("s")), &steps)
        },
    },
];

/// What was given, or the defaults: every key is there.
struct Values {
    numbers: BTreeMap<&'static str, [f64; 2]>,
    /// The CPUs that the work may use; none: all.
    cpus: Option<Vec<u16>>,
}

impl Values {
    fn between(&self, key: &str) -> [f64; 2] {
        self.numbers.get(key).copied().unwrap_or([0.0, 0.0])
    }

    fn number(&self, key: &str) -> f64 {
        let [a, b] = self.between(key);
        (a + b) / 2.0
    }

    fn count(&self, key: &str) -> u64 {
        self.number(key).round().clamp(1.0, 1e9) as u64
    }

    /// Seconds as us.
    fn s(&self, key: &str) -> f64 {
        self.number(key) * 1e6
    }

    /// An even length of the file format.
    fn length(&self, key: &str) -> String {
        self.part(key, 1.0)
    }

    /// A part of an even length.
    fn part(&self, key: &str, share: f64) -> String {
        let [a, b] = self.between(key).map(|us| us * share);
        if a == b { a.to_string() } else { format!("[{a}, {b}]") }
    }

    /// A length even in the logarithm.
    fn spread(&self, key: &str) -> String {
        let [a, b] = self.between(key);
        if a == b { a.to_string() } else { format!("{{ log = [{a}, {b}] }}") }
    }
}

fn run(us: f64) -> String {
    format!("{{ run_us = {us} }}")
}
fn wake(name: &str) -> String {
    format!("{{ wake = \"{name}\" }}")
}
fn block() -> String {
    "{ block = true }".into()
}
fn period(us: f64) -> String {
    format!("{{ period_us = {us} }}")
}

/// What one of a pair or a ring does when it is woken: its work, in the midst of which it wakes the next.
fn turn(v: &Values, work: &str, next: &str) -> Vec<String> {
    let after = v.number("after").clamp(0.0, 1.0);
    let part = |share| format!("{{ run_us = {} }}", v.part(work, share));
    let mut steps = Vec::new();
    steps.extend((after < 1.0).then(|| part(1.0 - after)));
    steps.push(wake(next));
    steps.extend((after > 0.0).then(|| part(after)));
    steps
}

fn task(name: &str, count: u64, keys: &str, steps: &[String]) -> String {
    format!("[[task]]\nname = \"{name}\"\ncount = {count}\n{keys}\nsteps = [{}]\n\n", steps.join(", "))
}

fn parallel(v: &Values) -> String {
    if v.number("parts") >= 1.0 {
        let parts = v.count("parts");
        let worker = ["{ take = \"part\" }".to_owned(), run(v.s("s") / parts as f64)];
        return format!("[jobs]\npart = {parts}\n\n") + &task("worker", v.count("threads"), "", &worker);
    }
    let (n, phases) = (v.count("threads"), v.count("phases"));
    let (all, serial) = (v.s("s") / phases as f64, v.number("serial").clamp(0.0, 1.0));
    let mut main = vec![run((all * serial).max(0.001)), "{ wake_all = \"worker\" }".to_owned()];
    main.extend((0..n).map(|_| block()));
    let worker = [block(), run(all * (1.0 - serial) / n as f64), wake("main")];
    let rounds = format!("rounds = {phases}");
    task("main", 1, &rounds, &main) + &task("worker", n, &format!("{rounds}\nforked = true"), &worker)
}

fn periodic(v: &Values) -> String {
    let us = 1e6 / v.number("hz").max(1e-3);
    let [low, high] = v.between("duty");
    let work = if low == high { format!("{}", us * low) } else { format!("[{}, {}]", us * low, us * high) };
    let steps = [period(us), format!("{{ run_us = {work} }}")];
    let keys = format!("rounds_within_s = {}\nstart_us = [0, {us}]", v.number("s"));
    task("periodic", v.count("threads"), &keys, &steps)
}

/// What goes on beside the work: threads that compute for at most half of the time, each in turns of 10 ms at a moment of its own.
fn beside(v: &Values) -> String {
    let cpus = v.number("beside").min(1000.0);
    if cpus == 0.0 {
        return String::new();
    }
    let (n, turn_us) = ((2.0 * cpus).ceil(), 1e4);
    let steps = [period(turn_us), run(turn_us * cpus / n)];
    task("beside", n as u64, &format!("role = \"background\"\nstart_us = [0, {turn_us}]"), &steps)
}

fn ring(v: &Values) -> String {
    let (n, rounds) = (v.count("tasks").clamp(2, 1000), v.count("rounds"));
    let mut text = String::new();
    for i in 0..n {
        let mut steps = turn(v, "us", &format!("hop{}", (i + 1) % n));
        steps.insert(if i == 0 { steps.len() } else { 0 }, block());
        let rings = v.count("rings");
        let bound = if v.number("bound") >= 1.0 { format!("\ncore = {}", i * rings) } else { String::new() };
        text += &task(&format!("hop{i}"), rings, &format!("rounds = {rounds}{bound}"), &steps);
    }
    text
}

fn forks(v: &Values) -> String {
    let (n, shells) = (v.count("programs").min(20_000), v.count("shells").min(1000));
    let mut text = String::new();
    for shell in 0..shells {
        let name = if shells == 1 { "shell".to_owned() } else { format!("shell{shell}") };
        let mut steps = Vec::new();
        for i in (shell..n).step_by(shells as usize) {
            let program = format!("program{i}");
            steps.extend([run(v.number("shell")), wake(&program), block()]);
            let work = [block(), format!("{{ run_us = {} }}", v.spread("us")), wake(&name)];
            text += &task(&program, 1, "rounds = 1\nforked = true", &work);
        }
        if !steps.is_empty() {
            text = task(&name, 1, "rounds = 1", &steps) + &text;
        }
    }
    text
}

fn requests(v: &Values) -> String {
    let (n, copies) = (v.count("services"), v.count("copies"));
    let mean = 1e6 * copies as f64 / v.number("rate").max(1e-3);
    let arrive = [
        format!("{{ sleep_us = [{}, {}] }}", mean * 0.1, mean * 1.9),
        "{ run_us = 3 }".to_owned(),
        wake("service0"),
    ];
    let mut text = task("arrivals", copies, &format!("rounds_within_s = {}", v.number("s")), &arrive);
    for i in 0..n {
        let mut steps = vec![block(), format!("{{ run_us = {} }}", v.spread("us"))];
        if i + 1 < n {
            steps.push(wake(&format!("service{}", i + 1)));
        }
        text += &task(&format!("service{i}"), copies, "", &steps);
    }
    text
}

/// The CPUs of a list as `taskset -c` takes it, with `+` in place of the comma.
fn cpu_list(text: &str) -> Option<Vec<u16>> {
    let mut cpus = Vec::new();
    for part in text.split('+') {
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |t: &str| t.trim().parse::<u16>().ok();
        let (first, last, step) = (number(first)?, number(last)?, number(step).filter(|&s| s > 0)?);
        cpus.extend((first..=last).step_by(usize::from(step)));
        if first > last || cpus.len() > MOST_CPUS {
            return None;
        }
    }
    Some(cpus)
}

/// Binds the tasks of a text to the CPUs that the work may use.
fn bound(tasks: String, cpus: Option<&[u16]>) -> String {
    match cpus {
        None => tasks,
        Some(cpus) => tasks.replace("[[task]]\n", &format!("[[task]]\ncpus = {cpus:?}\n")),
    }
}

/// The generator that a text names, whether its parameters are right or not.
pub fn find(text: &str) -> Option<&'static Generator> {
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    ALL.iter().find(|g| g.name == name)
}

/// A number or `LOW..HIGH`.
fn value(text: &str) -> Option<[f64; 2]> {
    let number = |t: &str| t.trim().parse::<f64>().ok().filter(|v| v.is_finite() && (0.0..=1e12).contains(v));
    match text.split_once("..") {
        Some((low, high)) => {
            let ends = [number(low)?, number(high)?];
            (ends[0] <= ends[1]).then_some(ends)
        }
        None => number(text).map(|v| [v, v]),
    }
}

impl Parameter {
    /// Whether it may have these ends; else what it may be.
    fn check(&self, ends: [f64; 2]) -> Result<(), String> {
        let [least, most] = self.range;
        let fits = |end: f64| (least..=most).contains(&end) && (!self.whole || end.fract() == 0.0);
        let what = if self.whole { "a whole number of " } else { "" };
        if ends.into_iter().all(fits) { Ok(()) } else { Err(format!("{what}{least} to {most}")) }
    }
}

impl Generator {
    fn all(&self) -> impl Iterator<Item = &'static Parameter> {
        self.parameters.iter().chain(COMMON)
    }

    fn values(&self, given: &str, list: &str) -> Result<Values, GenerateError> {
        let wrong = |problem: String| GenerateError::Parameter { given: given.to_owned(), problem };
        let mut numbers: BTreeMap<&'static str, [f64; 2]> =
            self.all().map(|p| (p.name, value(p.default).unwrap_or([0.0, 0.0]))).collect();
        let mut cpus = None;
        let mut seen: Vec<&str> = Vec::new();
        for pair in list.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (key, text) = pair.split_once('=').unwrap_or((pair, ""));
            let known = self.all().find(|p| p.name == key.trim()).ok_or_else(|| {
                let names = self.all().map(|p| p.name).collect::<Vec<_>>();
                wrong(format!(
                    "'{key}': no parameter of {}{}; expected {}",
                    self.name,
                    suggest(key, names.iter().copied()),
                    names.join(", ")
                ))
            })?;
            if seen.contains(&known.name) {
                return Err(wrong(format!("{key}: expected once, not twice")));
            }
            seen.push(known.name);
            if known.name == CPUS {
                let list = cpu_list(text).ok_or_else(|| {
                    wrong(format!("{key}={text}: expected CPUs such as 0-7, 0-14:2 or 0-3+8-11"))
                })?;
                cpus = Some(list);
                continue;
            }
            let expected =
                || wrong(format!("{key}={text}: expected a number such as {0}, or LOW..HIGH", known.default));
            let ends = value(text).ok_or_else(expected)?;
            known.check(ends).map_err(|range| wrong(format!("{key}={text}: expected {range}")))?;
            numbers.insert(known.name, ends);
        }
        Ok(Values { numbers, cpus })
    }
}

/// The text of the workload file that `given` stands for: `NAME` or `NAME:key=value,...`; `None` where it names no generator.
///
/// # Errors
/// One line that names the parameter and what was expected.
pub fn text(given: &str) -> Option<Result<String, GenerateError>> {
    let generator = find(given)?;
    let list = given.split_once(':').map_or("", |(_, list)| list);
    Some(generator.values(given, list).map(|values| {
        let [low, high] = values.between("memory").map(|m| m.min(1.0));
        let [least, greatest] = values.between("ipc").map(|ipc| ipc.clamp(0.01, 100.0));
        let mut text = String::new();
        _ = write!(
            text,
            "name = \"{given}\"\nsummary = \"{}\"\nreference_khz = {}\nmemory_share = [{low}, {high}]\nipc_factor = [{least}, {greatest}]\n\n",
            generator.summary,
            values.count("khz")
        );
        text + &bound((generator.tasks)(&values), values.cpus.as_deref()) + &beside(&values)
    }))
}

/// The workload that `given` stands for.
///
/// # Errors
/// As [`text`], and where it would have too many tasks.
pub fn workload(given: &str) -> Option<Result<Workload, GenerateError>> {
    Some(text(given)?.and_then(|text| parse(&text, given).map_err(GenerateError::from)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Affinity, Dist, Program, Step};

    #[test]
    fn the_work_is_bound_and_what_goes_on_beside_is_not() {
        let affinities = |text: &str| -> Vec<Option<Affinity>> {
            workload(text).unwrap().unwrap().tasks.into_iter().map(|t| t.affinity).collect()
        };
        let some = |cpus: &[u16]| Some(Affinity::Cpus(cpus.to_vec()));
        let pair = some(&[4, 5, 6]);
        assert_eq!(affinities("pairs:cpus=4-6,beside=1"), [pair.clone(), pair, None, None]);
        assert_eq!(affinities("program:cpus=3"), [some(&[3])]);
        assert_eq!(affinities("program:cpus=0-5:2+8-9,s=2"), [some(&[0, 2, 4, 8, 9])]);
        assert_eq!(affinities("program"), [None]);
        for wrong in ["0-65536", "1.5", "5-4", "", "0-4:0", "0..4", "0-", "0-65535"] {
            let told = workload(&format!("program:cpus={wrong}")).unwrap().unwrap_err().to_string();
            assert!(
                told.ends_with(&format!("cpus={wrong}: expected CPUs such as 0-7, 0-14:2 or 0-3+8-11")),
                "{told}"
            );
        }
        assert!(workload("ring:bound=1,cpus=0-3").unwrap().is_err());
    }

    /// As much other work as was asked for, in turns, which is not judged.
    #[test]
    fn work_goes_on_beside() {
        let made = workload("program:s=1,beside=1.8").unwrap().unwrap();
        let (judged, beside): (Vec<_>, Vec<_>) = made.tasks.iter().partition(|t| t.is_foreground());
        assert_eq!((judged.len(), beside.len()), (1, 4));
        let text = text("program:s=1,beside=1.8").unwrap().unwrap();
        assert!(text.contains("steps = [{ period_us = 10000 }, { run_us = 4500 }]"), "{text}");
    }

    /// The page has each generator with each parameter and its default.
    #[test]
    fn the_page_has_every_parameter() {
        let page = include_str!("../../../../docs/hardware.md");
        let all = ALL.iter().map(|g| (format!("`{}`", g.name), g.parameters));
        for (name, parameters) in all.chain([("all".to_owned(), COMMON)]) {
            let row = page.lines().find(|line| line.starts_with(&format!("| {name} |"))).expect("a row");
            for p in parameters {
                assert!(row.contains(&format!("`{}` ({}", p.name, p.default)), "{name}: {} in {row}", p.name);
            }
        }
    }

    #[test]
    fn every_generator_makes_a_workload_of_its_defaults() {
        for g in ALL {
            let made = workload(g.name).unwrap().unwrap_or_else(|e| panic!("{}: {e}", g.name));
            assert!(made.tasks.iter().any(|t| t.is_foreground()), "{}", g.name);
        }
    }

    #[test]
    fn a_periodic_load_has_its_rate_and_its_share() {
        let made = workload("periodic:hz=347,duty=0.75,threads=2,khz=4000000,memory=0").unwrap().unwrap();
        assert_eq!(made.tasks.len(), 2);
        let Program::Pattern(p) = &made.tasks[1].program else { panic!("a pattern") };
        // 1 s / 347, and three quarters of it at 4 GHz.
        assert!(matches!(p.steps[0], Step::Period(ns) if ns.abs_diff(2_881_844) < 2), "{:?}", p.steps);
        assert!(
            matches!(p.steps[1], Step::Run(Dist::Fixed(c)) if c.abs_diff(8_645_533) < 9),
            "{:?}",
            p.steps
        );
    }

    #[test]
    fn all_workers_wait_for_the_serial_part() {
        let made = workload("parallel:threads=3,s=1,serial=0.25,phases=1,memory=0").unwrap().unwrap();
        let cycles = |t: usize| {
            let Program::Pattern(p) = &made.tasks[t].program else { panic!("a pattern") };
            p.steps.iter().map(|s| if let Step::Run(d) = s { d.max() } else { 0 }).sum::<u64>()
        };
        assert_eq!((cycles(0), cycles(1), cycles(3)), (750_000_000, 750_000_000, 750_000_000));
    }

    #[test]
    fn mistakes_name_the_parameter() {
        for (given, part) in [
            ("periodic:herz=3", "'herz': no parameter of periodic"),
            ("periodic:hz=fast", "hz=fast: expected a number such as 100"),
            ("video:s=9..3", "s=9..3: expected"),
        ] {
            let error = workload(given).unwrap().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(workload("no-such").is_none());
    }
}
