//! Every flag that names an output, and a quick call that writes it. A unit test of the command line holds this table
//! against clap's tree (`cli.rs`); `outputs.rs` beside this folder runs the calls.

/// A flag that names an output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputCase {
    /// The command's words.
    pub(crate) command: &'static str,
    /// The flag, without its dashes.
    pub(crate) flag: &'static str,
    pub(crate) kind: Kind,
    /// A call in a folder with the support files, in words: `{}` is the output. Empty: a call of its own.
    pub(crate) call: &'static str,
}

/// What becomes of an output when its writer is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Whole or absent.
    Result,
    /// Whole records, each a line; made anew.
    Log,
    /// The same; an older one is never written over.
    NewLog,
    /// Goes on with a log that is there.
    Resumed,
    /// Can be read as far as it goes.
    Recording,
}

/// A workload of a few milliseconds, in the folder of each call as `work.toml` and `other.toml`.
#[allow(dead_code, reason = "not needed where the table is only looked at")]
pub(crate) const WORK: &str = "name = 'work'\nsummary = 'bursts'\n[[task]]\nname = 'work'\ncount = 2\nrounds = 20\n\
    steps = [{ run_us = [2000, 4000] }, { sleep_us = [1000, 2000] }]\n";

const fn case(command: &'static str, flag: &'static str, kind: Kind, call: &'static str) -> OutputCase {
    OutputCase { command, flag, kind, call }
}

pub(crate) const OUTPUTS: &[OutputCase] = &[
    case("compare", "report", Kind::Result, "compare work.toml -m thinkpad-r51 --exact --report {}"),
    case("compare", "perfetto", Kind::Result, "compare work.toml -m thinkpad-r51 --exact --perfetto {}"),
    case(
        "compare",
        "ftrace",
        Kind::Result,
        "compare work.toml -m thinkpad-r51 --exact -p schedutil --ftrace {}",
    ),
    case(
        "tune",
        "output",
        Kind::Result,
        "tune work.toml -m thinkpad-r51 --space burst --budget trials=4 --replicas 40 --log log.jsonl -o {}",
    ),
    case(
        "tune",
        "log",
        Kind::Log,
        "tune work.toml other.toml -m thinkpad-r51 --space burst --budget trials=4 --replicas 40 -o p.toml --log {}",
    ),
    case("tune", "resume", Kind::Resumed, ""),
    case("record", "output", Kind::Recording, "record -o {} -- true"),
    case(
        "compare",
        "keep",
        Kind::Recording,
        "compare -m thinkpad-r51 -p schedutil --exact --keep {} -- true",
    ),
    case("run", "output", Kind::Result, "run -o {} -- true"),
    case("ab", "output", Kind::NewLog, "ab --of time --idle-floor 0 --warm-up 1 --pairs 3 -o {} true true"),
    case("ab", "resume", Kind::Resumed, ""),
    case(
        "ab",
        "report",
        Kind::Result,
        "ab -m thinkpad-r51 --workload work.toml schedutil performance --report {}",
    ),
    case(
        "prove",
        "output",
        Kind::NewLog,
        "prove --root emulated:amd-laptop --for 1200ms --block 200ms -o {} current governor=powersave",
    ),
    case("prove", "resume", Kind::Resumed, ""),
    case(
        "prove",
        "report",
        Kind::Result,
        "prove --root emulated:amd-laptop --for 1200ms --block 200ms -o /dev/null --report {} current governor=powersave",
    ),
    case("top", "record", Kind::Result, "top --once --every 300ms --root emulated:amd-laptop --record {}"),
    case(
        "profile add",
        "output",
        Kind::Result,
        "profile add mine -p hwp:epp=power --root emulated:hybrid-laptop -o {}",
    ),
    case("report", "report", Kind::Result, "report run.json --report {}"),
    case("machines score", "page", Kind::Result, "machines score policies table --page {}"),
    case("reproduce", "report", Kind::Result, "reproduce openbsd --report {}"),
    case(
        "bench locks",
        "csv",
        Kind::Result,
        "bench locks -l std -t 1 --cs 0 --ncs 0 --ms 1 --repeats 1 --csv {}",
    ),
    case(
        "bench locks",
        "report",
        Kind::Result,
        "bench locks -l std -t 1 --cs 0 --ncs 0 --ms 1 --repeats 1 --report {}",
    ),
    case(
        "bench throughput",
        "csv",
        Kind::Result,
        "bench throughput --metric ([0-9]+) -n 1 --csv {} -- echo 5",
    ),
    case(
        "bench throughput",
        "report",
        Kind::Result,
        "bench throughput --metric ([0-9]+) -n 1 --report {} -- echo 5",
    ),
    case(
        "bench transition",
        "csv",
        Kind::Result,
        "bench transition --root emulated:core-i5-2gen --trials 1 --csv {}",
    ),
    case(
        "bench transition",
        "report",
        Kind::Result,
        "bench transition --root emulated:core-i5-2gen --trials 1 --report {}",
    ),
    case("bench wake", "report", Kind::Result, "bench wake --times 2 --sleep 300us --report {}"),
    case(
        "calibrate",
        "output",
        Kind::Result,
        "calibrate --root emulated:core-i5-2gen --budget 90s --keep-bad -o {}",
    ),
    case(
        "calibrate",
        "report",
        Kind::Result,
        "calibrate --root emulated:core-i5-2gen --budget 90s --keep-bad -o this.toml --report {}",
    ),
    case("capture", "output", Kind::Result, "capture --root emulated:core-i5-2gen -o {}"),
    // By `ab` itself, which it calls.
    case("coreidle tune", "output", Kind::NewLog, ""),
];
