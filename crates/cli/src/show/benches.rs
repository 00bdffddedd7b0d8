//! What the benchmarks of this machine found, for people and as CSV.

use crate::show::table;
use crate::show::table::sentence;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use std::fmt::Write;
use wattwise_figure::{Spread, fixed, shell};
use wattwise_live::bench::throughput::Throughput;
use wattwise_live::bench::transition::Matrix;
use wattwise_live::bench::wake::{WakeLatency, WakeUps};

pub(crate) fn transition_verdict(m: &Matrix) -> String {
    let means: Vec<f64> = m.pairs.iter().filter_map(|p| p.us.map(|s| s.mean)).collect();
    let worst = m.pairs.iter().filter_map(|p| p.us.map(|s| s.p99)).fold(0.0, f64::max);
    let missed = m.pairs.iter().filter(|p| p.us.is_none()).count();
    if means.is_empty() {
        return "no change of speed was seen in force".to_owned();
    }
    let (low, high) = means.iter().fold((f64::INFINITY, 0.0), |(l, h): (f64, f64), v| (l.min(*v), h.max(*v)));
    let never = if missed > 0 { format!("; {missed} pairs were never in force") } else { String::new() };
    format!(
        "a change of speed takes {} to {high:.0} us on average, depending on the pair; 99th percentile {worst:.0} us{never}",
        fixed(low, 0)
    )
}

pub(crate) fn throughput_verdict(t: &Throughput) -> String {
    let speed =
        |khz: Option<u64>| khz.map_or("as it is".to_owned(), |k| format!("{:.0} MHz", k as f64 / 1e3));
    match t.knee.and_then(|at| t.levels.get(at)) {
        Some(level) => {
            format!("{} is the lowest speed whose figure is within noise of the best", speed(level.khz))
        }
        None => "no knee can be told: one speed, or not enough runs".to_owned(),
    }
}

pub(crate) fn wake_verdict(w: &WakeUps) -> String {
    let mean = |s: &WakeLatency| s.timer_us.as_ref().map(|u| u.mean);
    let name = |s: &WakeLatency| s.state.clone().unwrap_or_else(|| "the machine as it is".to_owned());
    let seen: Vec<(String, f64)> = w.states.iter().filter_map(|s| Some((name(s), mean(s)?))).collect();
    match (seen.first(), seen.last()) {
        (Some(first), Some(last)) if seen.len() > 1 => format!(
            "a timer is late by {} us in the mean with {}, by {} us with {}",
            fixed(first.1, 0),
            first.0,
            fixed(last.1, 0),
            last.0
        ),
        (Some(only), _) => {
            format!("a timer is late by {} us in the mean with {}", fixed(only.1, 0), only.0)
        }
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
            Some((Some(s), 0)) => format!("{} ± {}", fixed(s.mean, 1), fixed(s.sd, 1)),
            Some((Some(s), missed)) => {
                format!("{} ± {} ({missed} missed)", fixed(s.mean, 1), fixed(s.sd, 1))
            }
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
    for (what, words) in [("link", &t.link), ("speeds are emulated", &t.emulated)] {
        out += &words.as_ref().map_or(String::new(), |words| format!("{what}: {words}\n"));
    }
    let show = |v: Option<f64>, d: usize| v.map_or("–".to_owned(), |v| fixed(v, d));
    let rows = t.levels.iter().enumerate().map(|(at, l)| {
        let spread =
            |s: Option<Spread>| format!("{} ± {}", show(s.map(|f| f.mean), 2), show(s.map(|f| f.sd), 2));
        let printed = (0..t.printed.len()).map(|at| spread(l.printed.get(at).copied().flatten()));
        let speed = l.khz.map_or("as it is".to_owned(), |k| format!("{:.0} MHz", k as f64 / 1e3));
        let mut row = vec![speed, spread(l.figure)];
        row.extend(printed);
        row.extend([
            show(l.cpu_percent, 1),
            show(l.joules, 2),
            if t.knee == Some(at) { "<- knee".to_owned() } else { String::new() },
        ]);
        row
    });
    let unit = if t.unit.is_empty() { "figure" } else { &t.unit };
    let mut head = vec!["speed", unit];
    head.extend(t.printed.iter().map(String::as_str));
    head.extend(["CPU %", "J", ""]);
    out += &plain(&head, rows.collect());
    out
}

/// One line a run.
pub(crate) fn throughput_csv(t: &Throughput) -> String {
    let names: String = t.printed.iter().map(|name| format!(",{name}")).collect();
    let mut out = format!("khz,run,figure,cpu_percent,joules,wall_s{names}\n");
    let number = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
    for l in &t.levels {
        for (at, run) in l.trials.iter().enumerate() {
            let printed = (0..t.printed.len()).map(|at| run.printed.get(at).copied().flatten());
            let printed: String = printed.map(|v| format!(",{}", number(v))).collect();
            _ = writeln!(
                out,
                "{},{at},{},{},{},{}{printed}",
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
            Some(s) => row.extend([s.mean, s.p50, s.p99, s.max].map(|v| fixed(v, 1))),
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
