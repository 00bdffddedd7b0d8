//! Pages of the machine's benchmarks and of single runs.

use wattwise_figure::{Spread, fixed, shell};
use wattwise_live::bench::throughput::Throughput;
use wattwise_live::bench::transition::{Matrix, Pair};
use wattwise_live::bench::wake::{WakeLatency, WakeUps};
use wattwise_live::run::Measured;
use wattwise_page::{Axis, LineShape, Plot, Point, Series};
use wattwise_page::{Heatmap, Section, Table};

fn mhz(khz: u64) -> String {
    format!("{:.0} MHz", khz as f64 / 1e3)
}

fn words(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|p| (*p).to_owned()).collect()
}

/// Delays between speeds: heat maps of mean and of the worst in a hundred, and the figures.
pub fn transition_sections(m: &Matrix) -> Vec<Section> {
    let names: Vec<String> = m.levels_khz.iter().map(|k| mhz(*k)).collect();
    let map = |title: &str, value: fn(&Spread) -> f64| {
        let cell = |from: u64, to: u64| {
            let found = m.pairs.iter().find(|p| (p.from_khz, p.to_khz) == (from, to));
            found.and_then(|p| p.us.as_ref()).map_or(f64::NAN, value)
        };
        Section::Heatmap(Heatmap {
            title: title.to_owned(),
            row_name: "From".to_owned(),
            column_name: "to".to_owned(),
            rows: names.clone(),
            columns: names.clone(),
            values: m
                .levels_khz
                .iter()
                .map(|f| m.levels_khz.iter().map(|t| cell(*f, *t)).collect())
                .collect(),
            unit: "µs".to_owned(),
            note: format!("{} trials a pair in random order; in force by {}.", m.trials, m.by),
        })
    };
    let row = |p: &Pair| {
        let mut row = vec![format!("{} → {}", mhz(p.from_khz), mhz(p.to_khz))];
        row.extend(spread(p.us.as_ref()));
        row.push(p.missed.to_string());
        row
    };
    vec![
        Section::Text {
            title: "Measured".to_owned(),
            body: format!(
                "{}, {}. From the request through the driver until the change is in force.",
                m.machine, m.policy
            ),
        },
        map("Mean delay", |s| s.mean),
        map("99th percentile", |s| s.p99),
        Section::Table(Table {
            title: "Every pair".to_owned(),
            head: words(&[
                "Change",
                "Mean, µs",
                "Sd, µs",
                "p50, µs",
                "p95, µs",
                "p99, µs",
                "Max, µs",
                "Missed",
            ]),
            rows: m.pairs.iter().map(row).collect(),
            note: String::new(),
        }),
    ]
}

fn spread(s: Option<&Spread>) -> Vec<String> {
    match s {
        Some(s) => [s.mean, s.sd, s.p50, s.p95, s.p99, s.max].map(|v| fixed(v, 1)).to_vec(),
        None => vec!["–".to_owned(); 6],
    }
}

/// A figure by speed.
pub fn throughput_sections(t: &Throughput) -> Vec<Section> {
    let speed = |khz: Option<u64>| khz.map_or("as it is".to_owned(), mhz);
    let verdict = match t.knee.and_then(|at| t.levels.get(at)) {
        Some(level) => {
            format!("{} is the lowest speed whose figure is within noise of the best.", speed(level.khz))
        }
        None => "One speed: there is no knee to find.".to_owned(),
    };
    let mut sections = vec![Section::Text {
        title: "Measured".to_owned(),
        body: format!(
            "{}\n\n{} on {}. Energy {}.{}{}",
            verdict,
            shell::line(&t.command),
            t.machine,
            t.energy,
            t.link.as_ref().map_or(String::new(), |link| format!(" Link: {link}.")),
            t.emulated.as_ref().map_or(String::new(), |how| format!(" Speeds are emulated: {how}."))
        ),
    }];
    let point = |l: &wattwise_live::bench::throughput::Level| {
        let s = l.figure?;
        Some(Point { x: l.khz? as f64 * 1e3, y: s.mean, error: Some((s.mean - s.sd, s.mean + s.sd)) })
    };
    let mut points: Vec<Point> = t.levels.iter().filter_map(point).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    if points.len() > 1 {
        sections.push(Section::Steps(Plot {
            title: "Figure against speed".to_owned(),
            x: Axis { name: "speed".to_owned(), unit: "Hz".to_owned(), ..Axis::default() },
            y: Axis {
                name: if t.unit.is_empty() { "figure".to_owned() } else { t.unit.clone() },
                ..Axis::default()
            },
            series: vec![Series {
                name: "mean, with standard deviation".to_owned(),
                shape: LineShape::Line,
                points,
            }],
            note: String::new(),
        }));
    }
    let cell = |v: Option<f64>, d: usize| v.map_or("–".to_owned(), |v| fixed(v, d));
    let row = |l: &wattwise_live::bench::throughput::Level| {
        let mut row = vec![speed(l.khz), cell(l.figure.map(|f| f.mean), 2), cell(l.figure.map(|f| f.sd), 2)];
        let printed = |at: usize| l.printed.get(at).copied().flatten().map(|f| f.mean);
        row.extend((0..t.printed.len()).map(|at| cell(printed(at), 2)));
        row.extend([cell(l.cpu_percent, 1), cell(l.joules, 2), l.trials.len().to_string()]);
        row
    };
    let mut head = vec![
        "Speed".to_owned(),
        format!("Mean, {}", if t.unit.is_empty() { "figure" } else { &t.unit }),
        "Sd".to_owned(),
    ];
    head.extend(t.printed.iter().cloned());
    head.extend(["CPU, %", "Energy, J", "Runs"].map(str::to_owned));
    sections.push(Section::Table(Table {
        title: "By speed".to_owned(),
        head,
        rows: t.levels.iter().map(row).collect(),
        note: "CPU is the busy share of all CPUs, the command and others together.".to_owned(),
    }));
    sections
}

/// Wake-ups by C-state.
pub fn wake_sections(w: &WakeUps) -> Vec<Section> {
    let row = |kind: &str, s: &WakeLatency, spread_us: Option<&Spread>| {
        let mut row = vec![format!("{}, {kind}", s.state.as_deref().unwrap_or("as it is"))];
        row.push(s.latency_us.map_or("–".to_owned(), |l| l.to_string()));
        row.extend(spread(spread_us));
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
    vec![
        Section::Text {
            title: "Measured".to_owned(),
            body: format!(
                "{}. CPU {} sleeps {} µs at a time{}.",
                w.machine,
                w.cpus.0,
                w.sleep_us,
                w.cpus.1.map_or(String::new(), |c| format!(" and is woken by CPU {c}, or by its timer"))
            ),
        },
        Section::Table(Table {
            title: "From due to running".to_owned(),
            head: words(&[
                "Deepest state",
                "Table, µs",
                "Mean, µs",
                "Sd, µs",
                "p50, µs",
                "p95, µs",
                "p99, µs",
                "Max, µs",
                "Entered",
            ]),
            rows: rows.collect(),
            note: "All deeper states are forbidden meanwhile; ‘entered’ is what the kernel counted."
                .to_owned(),
        }),
    ]
}

/// Single runs, side by side: (name, run).
pub fn run_sections(runs: &[(String, &Measured)]) -> Vec<Section> {
    let mut head = vec!["".to_owned()];
    head.extend(runs.iter().map(|r| r.0.clone()));
    let row = |name: &str, value: fn(&Measured) -> String| {
        let mut row = vec![name.to_owned()];
        row.extend(runs.iter().map(|r| value(r.1)));
        row
    };
    vec![Section::Table(Table {
        title: "Runs".to_owned(),
        head,
        rows: vec![
            row("Time, s", |m| fixed(m.wall_s, 3)),
            row("User, s", |m| fixed(m.user_s, 3)),
            row("System, s", |m| fixed(m.system_s, 3)),
            row("Energy, J", |m| m.machine.joules.map_or("–".to_owned(), |j| fixed(j, 3))),
            row("Mean power, W", |m| m.mean_w().map_or("–".to_owned(), |w| fixed(w, 2))),
            row("Energy by", |m| m.machine.energy.as_ref().map_or(String::new(), ToString::to_string)),
            row("Voluntary switches", |m| m.voluntary_switches.to_string()),
            row("Involuntary switches", |m| m.involuntary_switches.to_string()),
            row("Wake-ups of CPUs", |m| m.machine.wakeups.map_or("–".to_owned(), |n| n.to_string())),
            row("Peak memory, KiB", |m| m.peak_memory_kib.to_string()),
            row("Disturbed", |m| m.machine.disturbed.join("; ")),
        ],
        note: "One run each supports no verdict: ‘wattwise ab’ compares soundly.".to_owned(),
    })]
}
