//! A bench as a page: throughput, energy and efficiency against threads for each pair of sections, and the table.

use wattwise_figure::fixed;
use wattwise_lockbench::judge::Cell;
use wattwise_lockbench::section::Section as Length;
use wattwise_lockbench::{Bench, Place};
use wattwise_page::{Axis, AxisScale, LineShape, Plot, Point, Section, Series, Table};

/// What each chart shows: name, unit, value.
type Chart = (&'static str, &'static str, fn(&Cell) -> Option<f64>);

/// Study 004's three, then what it left out.
const CHARTS: [Chart; 5] = [
    ("throughput", "1/s", |c| Some(c.acquisitions_per_s)),
    ("power", "W", |c| c.watts),
    ("efficiency", "1/J", |c| c.acquisitions_per_j),
    ("CPUs used", "", |c| Some(c.cpus)),
    ("Jain's fairness", "", |c| Some(c.jain)),
];

/// The page's parts.
pub fn sections(bench: &Bench) -> Vec<Section> {
    let mut sections = vec![Section::Text { title: "Verdict".into(), body: summary(bench).join("\n\n") }];
    let mut body = vec![
        format!(
            "On {}. Throughput, CPU time, fairness and waits: {}. Energy: {}.",
            bench.machine, bench.figures, bench.energy
        ),
        format!(
            "{} repeats in random order (seed {}), the locks of a cell one after another{}. Error bars are the 95 % \
             interval over the repeats.",
            bench.repeats,
            bench.seed,
            if bench.pinned { ", threads bound to CPUs" } else { "" }
        ),
    ];
    body.extend(bench.notes.iter().cloned());
    sections.push(Section::Text { title: "What was run".into(), body: body.join("\n\n") });
    if let Some(v) = &bench.verdict {
        sections.push(Section::Text {
            title: format!("What holds of {}", v.lock),
            body: verdict(v).join("\n\n"),
        });
    }
    let mut pairs: Vec<(Length, Length)> = Vec::new();
    for cell in &bench.cells {
        if !pairs.contains(&(cell.place.cs_us, cell.place.ncs_us)) {
            pairs.push((cell.place.cs_us, cell.place.ncs_us));
        }
    }
    for (cs, ncs) in pairs {
        let here: Vec<&Cell> =
            bench.cells.iter().filter(|c| (c.place.cs_us, c.place.ncs_us) == (cs, ncs)).collect();
        for (name, unit, value) in CHARTS {
            let title = format!("{name}: {cs} us inside the lock, {ncs} us outside");
            sections.extend(chart(&title, name, unit, value, &here));
        }
    }
    sections.push(table(bench));
    sections
}

fn chart(
    title: &str,
    name: &str,
    unit: &str,
    value: fn(&Cell) -> Option<f64>,
    cells: &[&Cell],
) -> Option<Section> {
    let mut series: Vec<Series> = Vec::new();
    for cell in cells {
        let Some(y) = value(cell).filter(|y| y.is_finite()) else { continue };
        let error = cell.noise.filter(|_| name == "throughput").map(|n| (y / (1.0 + n), y * (1.0 + n)));
        let point = Point { x: cell.place.threads as f64, y, error };
        match series.iter_mut().find(|s| s.name == cell.lock) {
            Some(s) => s.points.push(point),
            None => {
                series.push(Series { name: cell.lock.clone(), shape: LineShape::Line, points: vec![point] })
            }
        }
    }
    if series.is_empty() {
        return None;
    }
    let values = || series.iter().flat_map(|s| &s.points).map(|p| p.y);
    let (least, most) = values().fold((f64::INFINITY, 0.0), |(l, m): (f64, f64), v| (l.min(v), m.max(v)));
    // A collapse of a hundredfold is a flat line on an even scale.
    let scale = if least > 0.0 && most > 30.0 * least { AxisScale::Log } else { AxisScale::Linear };
    Some(Section::Steps(Plot {
        title: title.to_owned(),
        x: Axis { name: "threads".into(), whole: true, ..Axis::default() },
        y: Axis { name: name.to_owned(), unit: unit.to_owned(), scale, ..Axis::default() },
        series,
        note: String::new(),
    }))
}

fn table(bench: &Bench) -> Section {
    let row = |c: &Cell| {
        vec![
            c.lock.clone(),
            c.place.threads.to_string(),
            c.place.cs_us.to_string(),
            c.place.ncs_us.to_string(),
            fixed(c.acquisitions_per_s, 0),
            c.noise.map_or("–".into(), |n| fixed(n * 100.0, 1)),
            fixed(c.cpus, 2),
            fixed(c.jain, 3),
            fixed(c.wait_p50_us, 1),
            fixed(c.wait_p99_us, 1),
            fixed(c.wait_max_us, 0),
            c.watts.map_or("–".into(), |w| fixed(w, 1)),
            c.acquisitions_per_j.map_or("–".into(), |e| fixed(e, 0)),
        ]
    };
    Section::Table(Table {
        title: "All figures".into(),
        head: [
            "lock",
            "threads",
            "CS us",
            "NCS us",
            "1/s",
            "± %",
            "CPUs used",
            "Jain",
            "wait p50 us",
            "wait p99 us",
            "longest us",
            "W",
            "1/J",
        ]
        .map(String::from)
        .to_vec(),
        rows: bench.cells.iter().map(row).collect(),
        note: "± is half of the 95 % interval; –: too few repeats, or too far apart. CPUs used: CPU time over time, waiting included. Jain: 1 when all threads got as many turns."
            .into(),
    })
}

/// Most locks that a sentence names.
const NAMED: usize = 4;

/// Who is best in how many cells, by throughput and by acquisitions a joule; then what holds of the judged lock.
pub fn summary(bench: &Bench) -> Vec<String> {
    let mut places: Vec<Place> = Vec::new();
    for c in &bench.cells {
        if !places.contains(&c.place) {
            places.push(c.place);
        }
    }
    let mut out: Vec<String> = [
        ("throughput", (|c| Some(c.acquisitions_per_s)) as fn(&Cell) -> Option<f64>),
        ("acquisitions a joule", |c| c.acquisitions_per_j),
    ]
    .into_iter()
    .filter_map(|(name, value)| best(bench, &places, name, value))
    .collect();
    if let Some(v) = &bench.verdict {
        out.push(format!(
            "{}: best throughput or within the noise in {} of {} cells, on the Pareto front in {}, no worse than glibc in {}.",
            v.lock, v.at_best, v.places, v.on_front, v.no_worse_than_glibc
        ));
    }
    if out.is_empty() {
        out.push("Nothing was measured that could be compared.".into());
    }
    out
}

/// "Best throughput, or within its noise: a in 5 of 9 cells, b in 4."
fn best(bench: &Bench, places: &[Place], name: &str, value: fn(&Cell) -> Option<f64>) -> Option<String> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for place in places {
        let here: Vec<(&Cell, f64)> = bench
            .cells
            .iter()
            .filter(|c| c.place == *place)
            .filter_map(|c| Some((c, value(c).filter(|v| v.is_finite())?)))
            .collect();
        let most = here.iter().map(|h| h.1).fold(0.0, f64::max);
        for (c, v) in here {
            let is_best = v * (1.0 + c.noise.unwrap_or(0.0)) >= most;
            match counts.iter_mut().find(|n| n.0 == c.lock) {
                Some(count) => count.1 += usize::from(is_best),
                None => counts.push((&c.lock, usize::from(is_best))),
            }
        }
    }
    if counts.len() < 2 {
        return None;
    }
    counts.sort_by_key(|c| std::cmp::Reverse(c.1));
    let named: Vec<String> = counts
        .iter()
        .take(NAMED)
        .filter(|c| c.1 > 0)
        .enumerate()
        .map(|(at, (lock, n))| {
            if at == 0 {
                format!("{lock} in {n} of {} cells", places.len())
            } else {
                format!("{lock} in {n}")
            }
        })
        .collect();
    Some(format!("Best {name}, or within its noise: {}.", named.join(", ")))
}

/// A verdict in sentences.
pub fn verdict(v: &wattwise_lockbench::judge::Verdict) -> Vec<String> {
    let share = |n: usize| format!("{n} of {} cells", v.places);
    let mut out = vec![
        format!(
            "On the Pareto front of throughput, CPU time for an acquisition and fairness in {}.",
            share(v.on_front)
        ),
        format!("Best throughput, or not beaten beyond the noise, in {}.", share(v.at_best)),
        format!(
            "Worse than glibc in none of the three by more than the noise and 5 % in {}.",
            share(v.no_worse_than_glibc)
        ),
    ];
    let mark = |e: &String| if v.beyond_chance.contains(e) { " (beyond chance)" } else { "" };
    out.extend(v.exceptions.iter().map(|e| format!("{e}{}", mark(e))));
    if v.exceptions.len() > v.beyond_chance.len() {
        out.push(format!(
            "Of {} comparisons some pass the noise by chance; marked are those that do not (Bonferroni, 95 %).",
            v.comparisons
        ));
    }
    out
}
