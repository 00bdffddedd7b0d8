//! The head of a line of ftrace text: who, where, when and what; and which column of its flags says what.
//!
//! ```text
//!             bash-10876   [001] dN.2.  2782.591741: sched_waking: ...      (tracefs)
//!    sched-pipe-10999 ( 10876) [001] d..2.  2782.5931: sched_switch: ...    (option record-tgid)
//!             bash-10876 [001]  2782.591741: sched_switch: ...              (trace-cmd)
//!             bash 10876 [001]  2782.591741:   1 sched:sched_switch:k: ...  (perf script, with period and modifier)
//!             bash-10876   1dN.2.  2782.591741: sched_waking: ...           (trace-cmd report -l)
//!     bash-10876     1dN.2.  591741us+: sched_waking: ...                   (option latency-format: since the first event)
//!             bash-10876   [001] dN.2.  51234567890123: sched_waking: ...   (a clock that does not count seconds)
//! ```
//!
//! A name may hold blanks, brackets and dashes, so a line is taken apart from its firmest mark, the `[CPU]` that a time
//! follows, or the CPU and flags as one word before a time. A program can call itself `a-1 [0] 1: b: c`, and the arguments
//! can hold such a name too. But no name is longer than the kernel's 15 bytes: of several heads, the last whose name is so
//! short is the true one.
//!
//! **Flags.** Kernels have had four to seven columns of them, and a comment above the first event names each:
//! `#   || / _----=> hardirq/softirq`. The one of that name says whose time it was: `s` softirq, `h`, `H`, `Z`, `z`
//! interrupts. Text that has lost its comment is taken by the number of columns: of up to five it is the third, of more
//! (PREEMPT_RT adds need-resched-lazy before it) the fourth.

use crate::bounds::{MAX_CPUS, MAX_TID};
use crate::events::KernelContext;

/// When, as the text has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    /// Seconds with a fraction, in ns.
    Ns(u64),
    /// Counts of a clock whose rate the text does not tell.
    Ticks(u64),
}

/// A line's head.
#[derive(Debug, PartialEq)]
pub(super) struct LineHead<'a> {
    /// The task's thread id; `None` where the writer knew none.
    pub(super) current: Option<u32>,
    pub(super) cpu: u16,
    pub(super) flags: Option<&'a str>,
    pub(super) time: Stamp,
    /// Without its system and modifiers.
    pub(super) name: &'a str,
    pub(super) arguments: &'a str,
}

/// Which column of the flags is which, as the comment above the events has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Columns {
    seen: u8,
    /// That of `hardirq/softirq`.
    interrupt: Option<u8>,
}

impl Columns {
    /// Takes a comment's line. The first head counts: after it, a name with line ends in it could look like another.
    pub(super) fn comment(&mut self, line: &str) {
        if self.interrupt.is_some() {
            return;
        }
        if line.starts_with("# tracer:") {
            *self = Columns::default();
        }
        // `# || / _----=> hardirq/softirq`: bars, a slash, a pointer.
        let Some((bars, name)) = line.split_once("=>") else { return };
        if !bars.bytes().all(|b| b"#|/_- \t".contains(&b)) || !bars.contains('_') {
            return;
        }
        let name = name.trim();
        // The option latency-format has the CPU before the flags, in the same word.
        if name.starts_with("CPU") {
            return;
        }
        // The whole word, which no task's name has room for.
        if name == "hardirq/softirq" {
            self.interrupt = Some(self.seen);
        }
        self.seen = self.seen.saturating_add(1);
    }

    /// In whose time an event was written.
    pub(super) fn level(&self, flags: Option<&str>) -> KernelContext {
        let Some(flags) = flags.map(str::as_bytes) else { return KernelContext::Task };
        let usual = if flags.len() > 5 { 3 } else { 2 };
        match flags.get(self.interrupt.map_or(usual, usize::from)) {
            Some(b'h' | b'H' | b'Z' | b'z') => KernelContext::Hardirq,
            Some(b's') => KernelContext::Softirq,
            _ => KernelContext::Task,
        }
    }
}

/// Whether a name is as short as the kernel's are, its `TASK_COMM_LEN` without the end.
pub(super) fn is_kernels(name: &str) -> bool {
    // Not in bytes: each that is no UTF-8 was read as one character of three.
    name.trim().chars().count() <= 15
}

/// Of what can be read in several ways, the last with a name of the kernel; else the first, for writers with longer names. Each
/// reading comes with its place and whether its name is short enough.
pub(super) fn true_one<T>(readings: impl Iterator<Item = (usize, bool, T)>) -> Option<T> {
    let rank = |at: usize, is_kernels: bool| (is_kernels, if is_kernels { at } else { usize::MAX - at });
    readings.max_by_key(|(at, is_kernels, _)| rank(*at, *is_kernels)).map(|(_, _, reading)| reading)
}

/// Takes a line's head apart; `None` for anything that is no event.
pub(super) fn parse(line: &str) -> Option<LineHead<'_>> {
    let brackets = line.match_indices('[').filter_map(|(open, _)| {
        let (cpu, after) = line[open + 1..].split_once(']')?;
        let parsed = after_cpu(&line[..open], cpu.trim().parse().ok()?, after)?;
        Some((open, is_kernels(name_before(&line[..open])), parsed))
    });
    true_one(brackets.chain(fused(line)))
}

/// The name of `NAME-TID`, `NAME TID`, `NAME PID/TID`, each perhaps with `(TGID)`.
fn name_before(task: &str) -> &str {
    let without_number = |text: &'_ str| text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let mut task = task.trim_end();
    if let Some((name, _)) = task.strip_suffix(')').and_then(|t| t.rsplit_once('(')) {
        task = name.trim_end();
    }
    let mut name = &task[..without_number(task)];
    if let Some(pid) = name.strip_suffix('/') {
        name = &pid[..without_number(pid)];
    }
    name.strip_suffix(['-', ' ']).unwrap_or(name)
}

fn after_cpu<'a>(before: &'a str, cpu: u16, after: &'a str) -> Option<LineHead<'a>> {
    if cpu >= MAX_CPUS {
        return None;
    }
    // Flags, or the time at once.
    let (first, rest) = word(after)?;
    let (flags, time, rest) = match stamp(first) {
        Some(time) => (None, time, rest),
        None => {
            let (second, rest) = word(rest)?;
            (Some(first), stamp(second)?, rest)
        }
    };
    let (name, arguments) = event(rest)?;
    Some(LineHead { current: task(before)?, cpu, flags, time, name, arguments })
}

/// Heads whose CPU and flags are one word: the option latency-format, and `trace-cmd report -l`.
fn fused(line: &str) -> impl Iterator<Item = (usize, bool, LineHead<'_>)> {
    line.match_indices('-')
        .filter_map(|(dash, _)| Some((dash, is_kernels(&line[..dash]), after_dash(&line[dash + 1..])?)))
}

fn after_dash(text: &str) -> Option<LineHead<'_>> {
    const MOST_FLAGS: usize = 10;
    let (tid, rest) = word(text)?;
    let (place, rest) = word(rest)?;
    let digits = place.len() - place.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (cpu, flags) = place.split_at(digits);
    let sound = !text.starts_with(char::is_whitespace)
        && (4..=MOST_FLAGS).contains(&flags.len())
        && flags.bytes().all(|b| b == b'.' || b == b'#' || b.is_ascii_alphanumeric());
    let cpu = cpu.parse().ok().filter(|cpu| *cpu < MAX_CPUS)?;
    let tid = tid.parse().ok().filter(|tid| *tid < MAX_TID)?;
    let (time, rest) = fused_time(rest)?;
    let (name, arguments) = event(rest)?;
    sound.then_some(LineHead { current: Some(tid), cpu, flags: Some(flags), time, name, arguments })
}

/// `2782.591741:`, or microseconds with a mark for long ones: `12us :`, `12us+:`, `12us!:`.
fn fused_time(text: &str) -> Option<(Stamp, &str)> {
    let (first, rest) = word(text)?;
    if let Some(time) = stamp(first) {
        return Some((time, rest));
    }
    let text = text.trim_start();
    let end = text.find("us")?;
    let us: u64 = text[..end].parse().ok()?;
    let after = text[end + 2..].split_once(':')?;
    (after.0.len() <= 1).then_some((Stamp::Ns(us.checked_mul(1000)?), after.1))
}

/// The thread id at the end of `NAME-TID`, `NAME TID`, `NAME PID/TID`, each perhaps with `(TGID)`. `Some(None)` for a name alone
/// (`perf script -F comm,...`), and for a task of which perf knows no number.
fn task(before: &str) -> Option<Option<u32>> {
    let mut task = before.trim_end();
    if let Some(t) = task.strip_suffix(')') {
        task = t.rsplit_once('(')?.0.trim_end();
    }
    let digits = task.len() - task.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    if digits == 0 {
        return (!task.trim().is_empty()).then_some(None);
    }
    let tid = &task[task.len() - digits..];
    let tid = tid.parse().ok().filter(|t| *t < MAX_TID)?;
    Some((!is_unknown(task)).then_some(tid))
}

/// Whether a head is of perf's unknown task: `:-1    -1`, `:-1    -1/-1` (perf_sample__fprintf_start of its builtin-script.c). In no
/// other form is a number negative: `x -7` is thread 7 of the name `x `.
fn is_unknown(task: &str) -> bool {
    let mut words = task.split_whitespace();
    words.next() == Some(":-1") && matches!(words.next(), Some("-1" | "-1/-1")) && words.next().is_none()
}

/// The event's name and its arguments. perf script may put a count before it, puts its system there, and after it what was said
/// to perf of how it is to be recorded: `1 sched:sched_switch:k: prev_comm=...`, `sched:sched_switch/call-graph=fp/: ...`.
fn event(text: &str) -> Option<(&str, &str)> {
    let mut text = text.trim_start();
    if let Some((_, rest)) = word(text).filter(|(w, _)| w.bytes().all(|b| b.is_ascii_digit())) {
        text = rest.trim_start();
    }
    // `perf script --show-task-events`: `PERF_RECORD_COMM exec: sh:7/7`, `PERF_RECORD_FORK(8:8):(7:7)`.
    if text.starts_with(PERFS_OWN) {
        let (name, arguments) = text.split_at(text.find([':', '(', ' '])?);
        return Some((name, arguments.trim()));
    }
    let (first, after) = text.split_once(':')?;
    let of_system = after.split_once(':').filter(|(name, _)| is_name(name.split('/').next().unwrap_or(name)));
    let (name, mut arguments) = match of_system {
        Some((name, rest)) if !first.contains('/') => (name, rest),
        _ => (first, after),
    };
    let (name, terms) = name.split_once('/').unwrap_or((name, ""));
    // The terms themselves may hold colons; their end is a slash.
    if !terms.is_empty() && !terms.ends_with('/') {
        arguments = arguments.split_once('/')?.1;
        arguments = arguments.strip_prefix(':').unwrap_or(arguments);
    }
    // Modifiers are letters in a word of their own: `:k:`, `:ppu:`.
    if let Some((letters, rest)) = arguments.split_once(':')
        && !letters.is_empty()
        && letters.len() <= 8
        && letters.bytes().all(|b| b.is_ascii_alphabetic())
        && rest.starts_with(' ')
    {
        arguments = rest;
    }
    Some((name.trim_end(), arguments.trim()))
}

/// How lines of perf's own records begin.
pub(super) const PERFS_OWN: &str = "PERF_RECORD_";

fn is_name(text: &str) -> bool {
    text.len() > 3 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(char::is_whitespace)?;
    Some(text.split_at(end))
}

/// `SECONDS.FRACTION:`, or a clock's count.
fn stamp(text: &str) -> Option<Stamp> {
    let text = text.strip_suffix(':')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let Some((seconds, fraction)) = text.split_once('.') else {
        return text.parse().ok().filter(|_| digits(text)).map(Stamp::Ticks);
    };
    if fraction.len() > 9 || !digits(fraction) {
        return None;
    }
    let scale = 10u64.pow(9 - fraction.len() as u32);
    let seconds: u64 = seconds.parse().ok()?;
    let ns = seconds.checked_mul(1_000_000_000)?.checked_add(fraction.parse::<u64>().ok()? * scale)?;
    Some(Stamp::Ns(ns))
}

/// `SECONDS.FRACTION` of another clock, in ns.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let fraction = &fraction[..fraction.len().min(9)];
    match stamp(&format!("{whole}.{fraction}:"))? {
        Stamp::Ns(ns) => Some(ns),
        Stamp::Ticks(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Heads of Linux 4.4, 6.1, PREEMPT_RT 5.10 and PREEMPT_RT 4.19, from `trace.c` of each (`lat_help_header`, `print_func_help_header_irq`).
    #[test]
    fn the_comment_names_the_columns() {
        let head = |names: &[&str]| {
            let mut columns = Columns::default();
            columns.comment("# tracer: nop");
            for (n, name) in names.iter().enumerate() {
                columns.comment(&format!(
                    "#                            {} / _{}=> {name}",
                    "|".repeat(n),
                    "-".repeat(9 - n)
                ));
            }
            columns.comment("#                              |||| /     delay");
            columns.comment("#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION");
            columns
        };
        let rt = ["irqs-off", "need-resched", "need-resched-lazy", "hardirq/softirq", "preempt-depth"];
        for (names, flags, level) in [
            (
                &["irqs-off", "need-resched", "hardirq/softirq", "preempt-depth"][..],
                "d.h1",
                KernelContext::Hardirq,
            ),
            (
                &[
                    "irqs-off/BH-disabled",
                    "need-resched",
                    "hardirq/softirq",
                    "preempt-depth",
                    "migrate-disable",
                ],
                "bNs2.",
                KernelContext::Softirq,
            ),
            (&rt, "d..h2", KernelContext::Hardirq),
            (&rt, "d.Ls2", KernelContext::Softirq),
            (&rt, "d.h.2", KernelContext::Task),
            (&["CPU#", "irqs-off", "need-resched", "hardirq/softirq"], "d.h", KernelContext::Hardirq),
        ] {
            assert_eq!(head(names).level(Some(flags)), level, "{names:?} {flags}");
        }
        // Without a comment the number of columns decides.
        for (flags, level) in [
            ("d.h2.", KernelContext::Hardirq),
            ("d..h2..", KernelContext::Hardirq),
            ("d...2..", KernelContext::Task),
        ] {
            assert_eq!(Columns::default().level(Some(flags)), level, "{flags}");
        }
        assert_eq!(Columns::default().level(None), KernelContext::Task);
    }

    #[test]
    fn other_lines_are_no_comment_of_columns() {
        let mut columns = Columns::default();
        for line in [
            "# _=> hardirq",
            "# => x",
            " => schedule",
            "# a ==> hardirq",
            "A-1 [000] d..2. 1.0: x: a ==> hardirq",
        ] {
            columns.comment(line);
        }
        assert_eq!(columns.interrupt, None);
        // After the head, its words are a task's.
        columns.comment("#  / _-=> hardirq/softirq");
        let known = columns.clone();
        columns.comment("# tracer: x");
        assert!(columns == known && known.interrupt.is_some());
    }

    fn head(line: &str) -> (Option<u32>, u16, Option<&str>, Stamp, &str, &str) {
        let l = parse(line).unwrap_or_else(|| panic!("{line}"));
        (l.current, l.cpu, l.flags, l.time, l.name, l.arguments)
    }

    #[test]
    fn heads_of_every_dress() {
        let ns = |us: u64| Stamp::Ns(us * 1000);
        for (line, wanted) in [
            (
                "  a [7] b-x-10876   [001] d.s2.  2782.591741: e_x: a=1",
                (Some(10876), 1, Some("d.s2."), ns(2_782_591_741), "e_x", "a=1"),
            ),
            (
                "<idle>-0 (-----) [000] dNh4. 1.5: e_x: a=1",
                (Some(0), 0, Some("dNh4."), ns(1_500_000), "e_x", "a=1"),
            ),
            (
                "bash 10876 [001]  2.5:    1 sched:e_xy:k: a=1",
                (Some(10876), 1, None, ns(2_500_000), "e_xy", "a=1"),
            ),
            (
                "bash 1/10876 [001]  2.5: sched:e_xy/period=1,call-graph=fp/: a=1",
                (Some(10876), 1, None, ns(2_500_000), "e_xy", "a=1"),
            ),
            (
                "bash 10876 [001]  2.5: sched:e_xy/name=a:b/uk: a=1",
                (Some(10876), 1, None, ns(2_500_000), "e_xy", "a=1"),
            ),
            (
                "bash 10876 [001]  2.5: sched:e_xy: k: a=1",
                (Some(10876), 1, None, ns(2_500_000), "e_xy", "k: a=1"),
            ),
            (":-1    -1 [001]  2.5: sched:e_xy: a=1", (None, 1, None, ns(2_500_000), "e_xy", "a=1")),
            (":-1     -1/-1      [001]  2.5: sched:e_xy: a=1", (None, 1, None, ns(2_500_000), "e_xy", "a=1")),
            ("x -7 [001] 2.5: e_xy: a=1", (Some(7), 1, None, ns(2_500_000), "e_xy", "a=1")),
            (":-1 -7 [001] 2.5: e_xy: a=1", (Some(7), 1, None, ns(2_500_000), "e_xy", "a=1")),
            ("a :-1 -1 [001] 2.5: e_xy: a=1", (Some(1), 1, None, ns(2_500_000), "e_xy", "a=1")),
            (
                "               -9 [001] .....  2.5: e_xy: a=1",
                (Some(9), 1, Some("....."), ns(2_500_000), "e_xy", "a=1"),
            ),
            (
                "sched-pi-11150   0d..3.  3081.359544: e_xy:    a:b:7",
                (Some(11150), 0, Some("d..3."), ns(3_081_359_544), "e_xy", "a:b:7"),
            ),
            (
                "  <idle>-0       12dNh2.    5us+: e_xy: a=1",
                (Some(0), 12, Some("dNh2."), ns(5), "e_xy", "a=1"),
            ),
            (
                "    a-b-7        0d..2.   15us : e_xy: a=1",
                (Some(7), 0, Some("d..2."), ns(15), "e_xy", "a=1"),
            ),
            (
                "a-7 [000] d..2. 51234567890123: e_xy: a=1",
                (Some(7), 0, Some("d..2."), Stamp::Ticks(51_234_567_890_123), "e_xy", "a=1"),
            ),
        ] {
            assert_eq!(head(line), wanted, "{line}");
        }
    }

    #[test]
    fn other_lines_are_no_events() {
        for line in [
            "",
            "# tracer: nop",
            "[",
            "x-1 [000] y",
            "x-1 [a] d..1. 1.0: e: f",
            "CPU:1 [LOST 12 EVENTS]",
            " => __schedule",
            "\tffffffff8180a1c8 __schedule+0x3c8 ([kernel.kallsyms])",
            "a-b 1d..1. xus: e: f",
            "# a-1  0d..1. 1.0 f",
            "-",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
