//! Result files: told apart by their schema, and shown for people.

use crate::machine::run;
use crate::show::answer::{self, Shown};
use crate::show::screen::Look;
use crate::show::table::Order;
use crate::show::{summary, table};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::de::DeserializeOwned;
use std::borrow::BorrowMut;
use std::fmt::Write;
use std::path::Path;
use wattwise_advice::result::Comparison;
use wattwise_advice::summary::ComparisonSet;
use wattwise_figure::shell;
use wattwise_figure::{Spread, one_line};
use wattwise_live::ab::log as ab_file;
use wattwise_live::ab::log::Read;
use wattwise_live::ab::result;
use wattwise_live::bench::throughput;
use wattwise_live::bench::throughput::Throughput;
use wattwise_live::bench::transition;
use wattwise_live::bench::transition::Matrix;
use wattwise_live::bench::wake;
use wattwise_live::bench::wake::{WakeLatency, WakeUps};
use wattwise_page::Section;
use wattwise_replay::apply::is_ours;

/// What a result file holds.
pub(crate) enum ResultFile {
    Compare(Box<Comparison>),
    CompareSet(Box<ComparisonSet>),
    Run(Box<run::RunResult>),
    Ab(Box<Read>),
    Transition(Box<Matrix>),
    Throughput(Box<Throughput>),
    Wake(Box<WakeUps>),
}

impl ResultFile {
    /// Reads one, whatever it is.
    pub(crate) fn read(path: &Path) -> Result<ResultFile, String> {
        let at = path.display();
        let bytes =
            std::fs::read(path).map_err(|e| format!("{at}: {e}; expected a result file of wattwise"))?;
        ResultFile::parse(&bytes).map_err(|why| format!("{at}: {why}"))
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<ResultFile, String> {
        #[derive(serde::Deserialize)]
        struct Schema {
            schema: String,
        }
        fn whole<T: DeserializeOwned>(bytes: &[u8]) -> Result<Box<T>, String> {
            // Read as it is first, for errors that name the line.
            serde_json::from_slice::<T>(bytes).map_err(|e| e.to_string())?;
            let mut value = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
            one_line_each(&mut value);
            serde_json::from_value(value).map(Box::new).map_err(|e| e.to_string())
        }
        let first = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
        if first.starts_with(b"{\"header\"") {
            return ab_file::parse(bytes).map(|r| ResultFile::Ab(Box::new(in_lines(r))));
        }
        let Schema { schema } = serde_json::from_slice(bytes)
            .map_err(|e| format!("{e}; expected a result file of wattwise (made with --json or --output)"))?;
        match schema.as_str() {
            wattwise_advice::result::SCHEMA => {
                whole::<Comparison>(bytes).map(checked).map(ResultFile::Compare)
            }
            wattwise_advice::summary::SCHEMA => whole::<ComparisonSet>(bytes).map(|mut set| {
                set.comparisons = set.comparisons.into_iter().map(checked).collect();
                ResultFile::CompareSet(set)
            }),
            run::SCHEMA => whole(bytes).map(ResultFile::Run),
            transition::SCHEMA => whole(bytes).map(ResultFile::Transition),
            throughput::SCHEMA => whole(bytes).map(ResultFile::Throughput),
            wake::SCHEMA => whole(bytes).map(ResultFile::Wake),
            _ => Err(format!(
                "has schema '{schema}'; expected one of compare, run, ab, bench transition, throughput or wake"
            )),
        }
    }

    /// For the terminal.
    pub(crate) fn text(&self, look: Look, shown: Shown) -> String {
        match self {
            ResultFile::Compare(c) => answer::comparison(c, look, Order::Best, shown),
            ResultFile::CompareSet(set) => {
                let each =
                    set.comparisons.iter().map(|c| answer::comparison(c, look, Order::Best, shown) + "\n");
                each.collect::<String>() + &summary::text(set, look)
            }
            ResultFile::Run(r) => run::text(r),
            ResultFile::Ab(read) => result::text(&result::of(read)),
            ResultFile::Transition(m) => transition(m),
            ResultFile::Throughput(t) => throughput(t),
            ResultFile::Wake(w) => wake(w),
        }
    }

    /// What follows, in a sentence or two.
    pub(crate) fn verdict(&self) -> String {
        match self {
            ResultFile::Compare(c) => c.answer.text.clone(),
            ResultFile::CompareSet(set) => match (&set.summary.best, set.summary.best_ratio) {
                (Some(best), Some(ratio)) => {
                    format!("{best} needs {:.1} % of the reference's energy over all", ratio * 100.0)
                }
                _ => "No policy is within the limit of time in all of them".into(),
            },
            ResultFile::Run(r) => run_verdict(r),
            ResultFile::Ab(read) => {
                let judged = result::of(read);
                let words =
                    judged.comparisons.iter().filter_map(|c| c.verdicts.first()).map(|v| v.words.as_str());
                words.collect::<Vec<_>>().join("; ")
            }
            ResultFile::Transition(m) => transition_verdict(m),
            ResultFile::Throughput(t) => throughput_verdict(t),
            ResultFile::Wake(w) => wake_verdict(w),
        }
    }

    /// For a page with others. Runs are set side by side by the caller.
    pub(crate) fn sections(&self) -> Vec<Section> {
        match self {
            ResultFile::Compare(c) => wattwise_report::compare_sections(c),
            ResultFile::CompareSet(set) => {
                set.comparisons.iter().flat_map(wattwise_report::compare_sections).collect()
            }
            ResultFile::Run(r) => wattwise_report::run_sections(&[(run_name(r), &r.measured)]),
            ResultFile::Ab(read) => wattwise_report::ab_sections(read, &result::of(read)),
            ResultFile::Transition(m) => wattwise_report::transition_sections(m),
            ResultFile::Throughput(t) => wattwise_report::throughput_sections(t),
            ResultFile::Wake(w) => wattwise_report::wake_sections(w),
        }
    }
}

/// Every text as one line of which a terminal shows each character: the file may be a stranger's.
fn one_line_each(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::String(text) => *text = one_line(text),
        Value::Array(items) => items.iter_mut().for_each(one_line_each),
        Value::Object(fields) => fields.values_mut().for_each(one_line_each),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The same for what of an experiment is used as well as shown; all else is in lines as it is read.
fn in_lines(mut read: Read) -> Read {
    let header = &mut read.header;
    for arm in &mut header.arms {
        arm.policy = arm.policy.as_deref().map(one_line);
    }
    header.watts_of = one_line(&header.watts_of);
    read
}

/// A comparison whose command is shown only if it could be ours: whoever pastes it would run it.
fn checked<C: BorrowMut<Comparison>>(mut of: C) -> C {
    let answer = &mut of.borrow_mut().answer;
    if answer.apply.take_if(|line| !is_ours(line)).is_some() {
        answer.why_not = Some("the file's command is none that wattwise writes".into());
    }
    of
}

/// How a run is named beside others.
pub(crate) fn run_name(r: &run::RunResult) -> String {
    match &r.policy {
        Some(policy) => format!("{} under {policy}", shell::line(&r.command)),
        None => shell::line(&r.command),
    }
}

/// With a capital and a full stop.
pub(crate) fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map_or_else(String::new, |c| c.to_uppercase().to_string());
    first + letters.as_str() + if words.ends_with('.') { "" } else { "." }
}

fn run_verdict(r: &run::RunResult) -> String {
    let m = &r.measured;
    let energy = match (m.machine.joules, m.mean_w()) {
        (Some(j), Some(w)) => format!("{j:.2} J, {w:.2} W"),
        (Some(j), None) => format!("{j:.2} J"),
        (None, _) => "energy not known".to_owned(),
    };
    format!("{} and {energy}: one run supports no verdict", table::seconds(m.wall_s))
}

fn transition_verdict(m: &Matrix) -> String {
    let means: Vec<f64> = m.pairs.iter().filter_map(|p| p.us.map(|s| s.mean)).collect();
    let worst = m.pairs.iter().filter_map(|p| p.us.map(|s| s.p99)).fold(0.0, f64::max);
    let missed = m.pairs.iter().filter(|p| p.us.is_none()).count();
    if means.is_empty() {
        return "no change of speed was seen in force".to_owned();
    }
    let (low, high) = means.iter().fold((f64::INFINITY, 0.0), |(l, h): (f64, f64), v| (l.min(*v), h.max(*v)));
    let never = if missed > 0 { format!("; {missed} pairs were never in force") } else { String::new() };
    format!(
        "a change of speed takes {low:.0} to {high:.0} us in the mean, {worst:.0} us at most in 99 of 100{never}"
    )
}

fn throughput_verdict(t: &Throughput) -> String {
    let speed =
        |khz: Option<u64>| khz.map_or("as it is".to_owned(), |k| format!("{:.0} MHz", k as f64 / 1e3));
    match t.knee.and_then(|at| t.levels.get(at)) {
        Some(level) => {
            format!("{} is the lowest speed whose figure is within noise of the best", speed(level.khz))
        }
        None => "no knee can be told: one speed, or not enough runs".to_owned(),
    }
}

fn wake_verdict(w: &WakeUps) -> String {
    let mean = |s: &WakeLatency| s.timer_us.as_ref().map(|u| u.mean);
    let name = |s: &WakeLatency| s.state.clone().unwrap_or_else(|| "the machine as it is".to_owned());
    let seen: Vec<(String, f64)> = w.states.iter().filter_map(|s| Some((name(s), mean(s)?))).collect();
    match (seen.first(), seen.last()) {
        (Some(first), Some(last)) if seen.len() > 1 => format!(
            "a timer is late by {:.0} us in the mean with {}, by {:.0} us with {}",
            first.1, first.0, last.1, last.0
        ),
        (Some(only), _) => format!("a timer is late by {:.0} us in the mean with {}", only.1, only.0),
        _ => "no wake-up was measured".to_owned(),
    }
}

/// A plain table: first column left, others right.
fn plain(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let cell = |at: usize, text: String| {
        table::cell(text).set_alignment(if at == 0 { CellAlignment::Left } else { CellAlignment::Right })
    };
    table.set_header(head.iter().enumerate().map(|(at, h)| cell(at, (*h).to_owned())));
    for row in rows {
        table.add_row(row.into_iter().enumerate().map(|(at, c)| cell(at, c)));
    }
    let text = table.to_string();
    text.lines().map(|l| format!("{}\n", l.trim_end())).collect()
}

/// Delays in microseconds, from each speed (down) to each (across).
pub(crate) fn transition(m: &Matrix) -> String {
    let mhz = |khz: u64| format!("{:.0} MHz", khz as f64 / 1e3);
    let mut out = sentence(&transition_verdict(m)) + "\n\n";
    out += &format!(
        "{}, {}: {} trials a pair, in force by {}\nmean ± standard deviation, us; from (down) to (across)\n",
        m.machine, m.policy, m.trials, m.by
    );
    let names: Vec<String> = m.levels_khz.iter().map(|k| mhz(*k)).collect();
    let mut head = vec![""];
    head.extend(names.iter().map(String::as_str));
    let cell = |from: u64, to: u64| {
        let pair = m.pairs.iter().find(|p| (p.from_khz, p.to_khz) == (from, to));
        match pair.map(|p| (p.us, p.missed)) {
            None => "·".to_owned(),
            Some((Some(s), 0)) => format!("{:.1} ± {:.1}", s.mean, s.sd),
            Some((Some(s), missed)) => format!("{:.1} ± {:.1} ({missed} missed)", s.mean, s.sd),
            Some((None, _)) => "never".to_owned(),
        }
    };
    let rows = m.levels_khz.iter().map(|from| {
        let mut row = vec![mhz(*from)];
        row.extend(m.levels_khz.iter().map(|to| cell(*from, *to)));
        row
    });
    out += &plain(&head, rows.collect());
    out
}

fn csv_spread(s: Option<&Spread>) -> String {
    s.map_or(",,,,,,".to_owned(), |s| {
        format!("{},{},{},{},{},{},{}", s.n, s.mean, s.sd, s.p50, s.p95, s.p99, s.max)
    })
}

/// One line a pair.
pub(crate) fn transition_csv(m: &Matrix) -> String {
    let mut out = "from_khz,to_khz,n,mean_us,sd_us,p50_us,p95_us,p99_us,max_us,missed\n".to_owned();
    for p in &m.pairs {
        _ = writeln!(out, "{},{},{},{}", p.from_khz, p.to_khz, csv_spread(p.us.as_ref()), p.missed);
    }
    out
}

/// A figure by speed, and the knee.
pub(crate) fn throughput(t: &Throughput) -> String {
    let mut out = sentence(&throughput_verdict(t)) + "\n\n";
    out += &format!("{}\n{}; energy {}\n", shell::line(&t.command), t.machine, t.energy);
    let show = |v: Option<f64>, d: usize| v.map_or("–".to_owned(), |v| format!("{v:.d$}"));
    let rows = t.levels.iter().enumerate().map(|(at, l)| {
        vec![
            l.khz.map_or("as it is".to_owned(), |k| format!("{:.0} MHz", k as f64 / 1e3)),
            format!("{} ± {}", show(l.figure.map(|f| f.mean), 2), show(l.figure.map(|f| f.sd), 2)),
            show(l.cpu_percent, 1),
            show(l.joules, 2),
            if t.knee == Some(at) { "<- knee".to_owned() } else { String::new() },
        ]
    });
    let unit = if t.unit.is_empty() { "figure" } else { &t.unit };
    out += &plain(&["speed", unit, "CPU %", "J", ""], rows.collect());
    out
}

/// One line a run.
pub(crate) fn throughput_csv(t: &Throughput) -> String {
    let mut out = "khz,run,figure,cpu_percent,joules,wall_s\n".to_owned();
    let number = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
    for l in &t.levels {
        for (at, run) in l.trials.iter().enumerate() {
            _ = writeln!(
                out,
                "{},{at},{},{},{},{}",
                l.khz.map_or(String::new(), |k| k.to_string()),
                run.figure,
                number(run.cpu_percent),
                number(run.joules),
                run.wall_s
            );
        }
    }
    out
}

/// Wake-ups by C-state.
pub(crate) fn wake(w: &WakeUps) -> String {
    let mut out = sentence(&wake_verdict(w)) + "\n\n";
    out += &format!(
        "{}: CPU {} sleeps {} us at a time{}; from due to running, us\n",
        w.machine,
        w.cpus.0,
        w.sleep_us,
        w.cpus.1.map_or("; no second CPU to wake it".to_owned(), |c| format!(", woken by CPU {c}"))
    );
    let row = |kind: &str, s: &WakeLatency, spread: Option<&Spread>| {
        let mut row = vec![format!("{} {kind}", s.state.as_deref().unwrap_or("as it is"))];
        row.push(s.latency_us.map_or(String::new(), |l| l.to_string()));
        match spread {
            Some(s) => row.extend([s.mean, s.p50, s.p99, s.max].map(|v| format!("{v:.1}"))),
            None => row.extend(["–"; 4].map(str::to_owned)),
        }
        row.push(
            s.entered
                .iter()
                .filter(|e| e.1 > 0)
                .map(|(n, c)| format!("{n} {c}"))
                .collect::<Vec<_>>()
                .join(", "),
        );
        row
    };
    let rows = w
        .states
        .iter()
        .flat_map(|s| [row("timer", s, s.timer_us.as_ref()), row("other CPU", s, s.cross_us.as_ref())]);
    out += &plain(&["deepest state", "table", "mean", "p50", "p99", "max", "entered"], rows.collect());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use wattwise_figure::Random;

    /// How often each file is damaged.
    const ROUNDS: usize = 150;

    /// One place of a result becomes something else: what no program wrote, but is JSON.
    fn damage(value: &mut Value, random: &mut Random) {
        let inner = match value {
            Value::Array(items) if !items.is_empty() && random.below(8) != 0 => {
                let at = random.below(items.len());
                Some(&mut items[at])
            }
            Value::Object(fields) if !fields.is_empty() && random.below(12) != 0 => {
                let at = random.below(fields.len());
                fields.values_mut().nth(at)
            }
            _ => None,
        };
        if let Some(inner) = inner {
            return damage(inner, random);
        }
        match value {
            Value::Array(items) => match random.below(3) {
                0 => items.clear(),
                1 => items.truncate(1),
                _ => items.extend(items.clone()),
            },
            Value::Object(fields) => fields.clear(),
            Value::String(text) => {
                *text = ["", "\u{1b}[2J\n", "x"][random.below(3)].repeat(1 + random.below(300))
            }
            Value::Number(_) => {
                let odd = [0.0, -1.0, -0.0, 1e-320, 1e300, -1e300, 0.5, 18_446_744_073_709_551_615.0, 1e9];
                let whole = [0_i64, -1, 1, i64::MAX, i64::MIN];
                *value = match random.below(2) {
                    0 => json!(odd[random.below(odd.len())]),
                    _ => json!(whole[random.below(whole.len())]),
                };
            }
            Value::Bool(on) => *on = !*on,
            Value::Null => *value = json!(1),
        }
    }

    fn show(result: &ResultFile) {
        result.text(Look::PLAIN, Shown::WHOLE);
        result.verdict();
        wattwise_page::page("test", "test", &result.sections());
        if let ResultFile::Compare(c) = result {
            wattwise_report::compare_html(c, &[], "test");
        }
    }

    /// What does not fit into 80 columns is shown where there is room, and nothing is cut.
    #[test]
    fn a_wide_terminal_shows_more() {
        let bytes = include_bytes!("../../tests/results/compare.json");
        let result = ResultFile::parse(bytes).expect("as compare wrote it");
        let rows = |columns| {
            let text = result.text(Look { columns, ..Look::PLAIN }, Shown::WHOLE);
            let head = text.lines().position(|l| l.trim_start().starts_with("policy ")).expect("a table");
            let rows: Vec<String> =
                text.lines().skip(head).map_while(|l| (!l.is_empty()).then(|| l.into())).collect();
            rows
        };
        let (narrow, wide) = (rows(80), rows(110));
        assert!(narrow.iter().all(|l| l.chars().count() <= 80) && !narrow[0].contains("above idle"));
        assert!(wide.iter().all(|l| l.chars().count() <= 110) && wide[0].contains("above idle  p99 "));
        // The last column of a row says how it stands, on a wide terminal after the figures more.
        let figures = |row: &str| row.split("  ").take(4).map(str::to_owned).collect::<Vec<_>>();
        assert!(
            narrow.iter().zip(&wide).all(|(n, w)| w.len() > n.len() && figures(n)[..2] == figures(w)[..2])
        );
    }

    /// All but the command that applies the answer, which is copied as it is.
    #[test]
    fn a_small_terminal_holds_every_line() {
        for bytes in [
            include_bytes!("../../tests/results/compare.json").as_slice(),
            include_bytes!("../../tests/results/compare-set.json").as_slice(),
        ] {
            let text = ResultFile::parse(bytes).expect("as compare wrote it").text(Look::PLAIN, Shown::WHOLE);
            let long: Vec<&str> = text.lines().filter(|l| l.chars().count() > 80).collect();
            assert!(long.iter().all(|l| l.contains(": sudo wattwise set ")), "{long:?}");
        }
    }

    #[test]
    fn damaged_results_are_shown_or_refused() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/results");
        let mut kinds = std::collections::BTreeSet::new();
        for file in std::fs::read_dir(folder).expect(folder).flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            let bytes = std::fs::read(file.path()).expect(&name);
            show(&ResultFile::parse(&bytes).unwrap_or_else(|e| panic!("{name}: {e}")));
            let whole: Value = serde_json::from_slice(&bytes).expect(&name);
            kinds.insert(whole["schema"].as_str().expect("a schema").to_owned());
            let mut random = Random::new(21);
            let mut shown = 0;
            for _ in 0..ROUNDS {
                let mut value = whole.clone();
                for _ in 0..1 + random.below(3) {
                    damage(&mut value, &mut random);
                }
                match ResultFile::parse(value.to_string().as_bytes()) {
                    Ok(result) => {
                        shown += 1;
                        show(&result);
                    }
                    // What it quotes of the file is made harmless where it is printed.
                    Err(why) => assert!(!why.is_empty(), "{name}"),
                }
            }
            assert!(shown > ROUNDS / 20, "{name}: damage that leaves nothing to show finds nothing: {shown}");
        }
        assert_eq!(kinds.len(), 6, "{kinds:?}");
    }
}
