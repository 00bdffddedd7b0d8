//! Which of a program's mutexes are contended, and which lock would serve them.
//!
//! From what the interposer counted (`crates/locks-preload/src/watch.rs`). A mutex is worth a thought if threads wait for
//! it: at least once in a hundred locks, and for at least a thousandth of the time that the program ran, all waits
//! added up. What then serves is the table of `docs/notes/locks.md`:
//!
//! 1. `adaptive`, which is right for sections of any length and any number of threads.
//! 2. Where order matters, and sections are long (`LONG_NS`): `mcs:park`. A hand-over to a sleeper is little beside
//!    the section.
//! 3. Where order matters, sections are short (`SHORT_NS`) and no more threads come than there are CPUs:
//!    `mcs:spin-then-park`.
//!
//! Order matters here if somebody waited ten times longer than everybody before him would have taken, and longer than
//! people notice. Counting takes part in what it measures: times under a microsecond are mostly its own.

use serde::Serialize;
use std::collections::BTreeMap;

/// Version of what `locks advise --json` prints.
pub const SCHEMA: &str = "wattwise.locks-advice/1";

/// Sections longer than this are long; shorter than the other, short.
const LONG_NS: f64 = 100_000.0;
const SHORT_NS: f64 = 10_000.0;

/// Waits in a hundred locks, and of the time of the run, below which a mutex is not worth a thought.
const CONTENDED: f64 = 0.01;
const WAITED: f64 = 0.001;

/// By how much the longest wait must be longer than a queue's.
const UNFAIR: f64 = 10.0;

/// What people begin to notice.
const NOTICED_NS: u64 = 10_000_000;

/// How a mutex was used.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MutexUse {
    /// Where it is: a symbol or a place in an object for one that is static, else its address.
    pub mutex: String,
    /// Who first locked it.
    pub caller: String,
    /// How often it was locked.
    pub locked: u64,
    /// How often somebody had to wait for it.
    pub contended: u64,
    /// All waits together, s.
    pub waited_s: f64,
    /// The longest wait, s.
    pub longest_wait_s: f64,
    /// How long it was held, s on average.
    pub held_s: f64,
    /// Most threads that waited at once.
    pub most_waiting: u32,
    /// Which lock would serve it; none where any does.
    pub lock: Option<&'static str>,
    /// Why, in a few words.
    pub why: String,
}

/// What is said of a program.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LockAdvice {
    /// How long it ran, s.
    pub elapsed_s: f64,
    /// CPUs that it could run on.
    pub cpus: usize,
    /// Its mutexes, those that were waited for longest first.
    pub mutexes: Vec<MutexUse>,
    /// The lock for the whole program: that of the mutex that was waited for longest.
    pub lock: Option<&'static str>,
}

/// A line of the interposer's file, as counted.
#[derive(Debug, Clone, Default, PartialEq)]
struct MutexRow {
    locked: u64,
    contended: u64,
    waited_ns: u64,
    longest_ns: u64,
    held_ns: u64,
    most_waiting: u32,
}

/// Reads the files of a program's processes, and judges. The same static mutex in several processes is one.
///
/// # Errors
/// Which line is not the interposer's.
pub fn advise(files: &[String], elapsed_s: f64, cpus: usize) -> Result<LockAdvice, String> {
    let mut rows: BTreeMap<(String, String), MutexRow> = BTreeMap::new();
    for (process, text) in files.iter().enumerate() {
        let mut lines = text.lines();
        if lines.next().is_none_or(|head| !head.starts_with("wattwise-locks 1 ")) {
            return Err("is no file of libwattwise_pthread.so of this version".into());
        }
        for line in lines {
            let (at, caller, row) = parse(line, process)
                .ok_or_else(|| format!("'{line}' is no line of libwattwise_pthread.so"))?;
            let sum = rows.entry((at, caller)).or_default();
            sum.locked = sum.locked.saturating_add(row.locked);
            sum.contended = sum.contended.saturating_add(row.contended);
            sum.waited_ns = sum.waited_ns.saturating_add(row.waited_ns);
            sum.held_ns = sum.held_ns.saturating_add(row.held_ns);
            sum.longest_ns = sum.longest_ns.max(row.longest_ns);
            sum.most_waiting = sum.most_waiting.max(row.most_waiting);
        }
    }
    let mut mutexes: Vec<MutexUse> =
        rows.into_iter().map(|((mutex, caller), row)| judge(mutex, caller, &row, elapsed_s, cpus)).collect();
    mutexes.sort_by(|a, b| b.waited_s.total_cmp(&a.waited_s).then(b.locked.cmp(&a.locked)));
    let lock = mutexes.iter().find_map(|m| m.lock);
    Ok(LockAdvice { elapsed_s, cpus, mutexes, lock })
}

/// Where a mutex is, who locked it first, and its counts.
fn parse(line: &str, process: usize) -> Option<(String, String, MutexRow)> {
    let words: Vec<&str> = line.split(' ').collect();
    let [address, place, symbol, caller, calling, counts @ ..] = &words[..] else { return None };
    let number = |at: usize| counts.get(at)?.parse::<u64>().ok();
    let row = MutexRow {
        locked: number(0)?,
        contended: number(1)?,
        waited_ns: number(2)?,
        longest_ns: number(3)?,
        held_ns: number(4)?,
        most_waiting: u32::try_from(number(5)?).ok()?,
    };
    let object = |place: &str| place.rsplit_once('+').map_or(place, |(object, _)| object).to_owned();
    let named = |symbol: &str, place: &str| match symbol {
        "-" => place.to_owned(),
        symbol => format!("{symbol} in {}", object(place)),
    };
    let at = match *place {
        // On the heap or a stack: an address of this process alone.
        "-" if process == 0 => format!("0x{address}"),
        "-" => format!("0x{address} of process {}", process + 1),
        place => named(symbol, place),
    };
    Some((at, if *caller == "-" { "unknown".into() } else { named(calling, caller) }, row))
}

fn judge(mutex: String, caller: String, row: &MutexRow, elapsed_s: f64, cpus: usize) -> MutexUse {
    let held_ns = row.held_ns as f64 / row.locked.max(1) as f64;
    let waited_s = row.waited_ns as f64 * 1e-9;
    let share = row.contended as f64 / row.locked.max(1) as f64;
    let queue_ns = held_ns * f64::from(row.most_waiting.saturating_add(1));
    let unfair = row.longest_ns > NOTICED_NS && row.longest_ns as f64 > UNFAIR * queue_ns;
    let fits = (row.most_waiting as usize) < cpus;
    let (lock, why) = match () {
        () if row.contended == 0 => (None, "nobody waits for it"),
        () if share < CONTENDED || waited_s < WAITED * elapsed_s => (None, "waits are few"),
        () if unfair && held_ns >= LONG_NS => {
            (Some("mcs:park"), "held for long, and some wait far longer than others")
        }
        () if unfair && held_ns <= SHORT_NS && fits => {
            (Some("mcs:spin-then-park"), "held briefly, and some wait far longer than others")
        }
        () if held_ns >= LONG_NS => (Some("adaptive"), "held for long: a shorter section would do more"),
        () => (Some("adaptive"), "often waited for"),
    };
    MutexUse {
        mutex,
        caller,
        locked: row.locked,
        contended: row.contended,
        waited_s,
        longest_wait_s: row.longest_ns as f64 * 1e-9,
        held_s: held_ns * 1e-9,
        most_waiting: row.most_waiting,
        lock,
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "wattwise-locks 1 adaptive:spin\n";

    fn of(rows: &[&str]) -> LockAdvice {
        advise(&[HEAD.to_owned() + &rows.join("\n")], 10.0, 4).expect("the interposer's")
    }

    #[test]
    fn what_is_waited_for_comes_first_and_gets_a_lock() {
        let advice = of(&[
            "7f00 prog+10 cold prog+99 main 1000 5 100 100 1000000 1",
            "7f28 prog+38 hot prog+a0 work 1000 500 900000000 5000000 5000000 3",
            "5550 - - lib.so+9 - 10 0 0 0 10 0",
        ]);
        let told: Vec<_> = advice.mutexes.iter().map(|m| (m.mutex.as_str(), m.lock)).collect();
        assert_eq!(told, [("hot in prog", Some("adaptive")), ("cold in prog", None), ("0x5550", None)]);
        assert_eq!((advice.lock, advice.mutexes[2].caller.as_str()), (Some("adaptive"), "lib.so+9"));
        assert_eq!(advice.mutexes[0].held_s, 5e-6);
    }

    #[test]
    fn who_waits_too_long_gets_a_queue_that_suits_the_section() {
        // Held 200 us and 5 us; the longest wait is a second.
        let long = of(&["1 p+1 a p+2 b 1000 900 2000000000 1000000000 200000000 7"]);
        assert_eq!(long.lock, Some("mcs:park"));
        let short = of(&["1 p+1 a p+2 b 1000 900 2000000000 1000000000 5000000 3"]);
        assert_eq!(short.lock, Some("mcs:spin-then-park"));
        // More threads than CPUs: a queue would wait for who does not run.
        let crowded = of(&["1 p+1 a p+2 b 1000 900 2000000000 1000000000 5000000 4"]);
        assert_eq!(crowded.lock, Some("adaptive"));
    }

    #[test]
    fn processes_are_added_up_and_damage_is_told() {
        let file = |row: &str| HEAD.to_owned() + row;
        let rows = [
            file("1 p+1 a p+2 b 10 1 5 5 100 1\n"),
            file("9 p+1 a p+2 b 20 1 5 7 100 2\n77 - - - - 1 0 0 0 0 0"),
        ];
        let advice = advise(&rows, 1.0, 1).expect("both are");
        assert_eq!(
            (advice.mutexes.len(), advice.mutexes[0].locked, advice.mutexes[0].most_waiting),
            (2, 30, 2)
        );
        assert_eq!(advice.mutexes[1].mutex, "0x77 of process 2");
        for bad in ["", "something", "wattwise-locks 2 x\n"] {
            assert!(advise(&[bad.to_owned()], 1.0, 1).is_err());
        }
        assert!(advise(&[file("1 p+1 a p+2 b 10 1 5 5 100")], 1.0, 1).is_err_and(|e| e.contains("p+1")));
    }
}
