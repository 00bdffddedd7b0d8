//! A calibration as a page: what was measured beside what the fit says.

use crate::calibration::Calibration;
use crate::fit::{Fit, Unknown};
use crate::window::Observation;
use wattwise_page::{Axis, LineShape, Plot, Point, Section, Series, Table, Whisker, Whiskers};

/// Chance that a figure's interval holds it.
const CHANCE: f64 = 0.95;

/// The page's parts; words alone where nothing was measured.
pub fn sections(c: &Calibration) -> Vec<Section> {
    let body = c.notes.join("\n\n");
    let mut out = vec![Section::Text { title: c.machine.summary.clone(), body }];
    let Some(fit) = &c.fit else { return out };
    out.push(Section::Steps(against_load(fit, &c.observations)));
    out.push(Section::Steps(measured_and_fitted(fit, c)));
    out.push(Section::Steps(against_speed(fit, c)));
    out.push(Section::Whiskers(idle(fit, c)));
    out.push(Section::Table(figures(c)));
    out
}

/// All that is metered in a window: what the fit says, and what the meters said, in W.
fn whole(fit: &Fit, o: &Observation) -> (f64, f64) {
    fit.predicted(o).iter().fold((0.0, 0.0), |(p, w), part| (p + part.predicted_w, w + part.metered_w))
}

fn axis(name: &str, unit: &str) -> Axis {
    Axis { name: name.to_owned(), unit: unit.to_owned(), ..Axis::default() }
}

fn points(name: &str, mut points: Vec<Point>) -> Series {
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Series { name: name.to_owned(), shape: LineShape::Points, points }
}

fn against_load(fit: &Fit, observations: &[Observation]) -> Plot {
    let busy = |o: &Observation| o.taken.iter().flat_map(|t| t.one.iter().chain(&t.all)).sum::<f64>();
    let of = |value: fn((f64, f64)) -> f64| {
        observations.iter().map(|o| Point::from((busy(o), value(whole(fit, o))))).collect()
    };
    Plot {
        title: "Power against load".to_owned(),
        x: axis("busy cores", ""),
        y: axis("power", "W"),
        series: vec![points("measured", of(|(_, w)| w)), points("fitted", of(|(p, _)| p))],
        note: "A point for each window; speeds, threads and C-states differ between them.".to_owned(),
    }
}

fn measured_and_fitted(fit: &Fit, c: &Calibration) -> Plot {
    let of = |mix: bool| {
        let own = c.observations.iter().enumerate().filter(|(at, _)| c.is_mix(*at) == mix);
        own.map(|(_, o)| Point::from(whole(fit, o))).collect()
    };
    let most = c.observations.iter().map(|o| whole(fit, o).0).fold(0.0, f64::max);
    let same = Series {
        name: "the same".to_owned(),
        shape: LineShape::Line,
        points: vec![(0.0, 0.0).into(), (most, most).into()],
    };
    Plot {
        title: "Measured beside fitted".to_owned(),
        x: axis("fitted", "W"),
        y: axis("measured", "W"),
        series: vec![
            same,
            points("windows of the fit", of(false)),
            points("mixes that it has not seen", of(true)),
        ],
        note: "A good fit lies on the line.".to_owned(),
    }
}

fn against_speed(fit: &Fit, c: &Calibration) -> Plot {
    let series = c.machine.kinds.iter().enumerate().map(|(k, kind)| {
        let point = |(l, level): (usize, &wattwise_model::machine::SpeedLevel)| {
            let at = fit.unknowns.at(Unknown::Busy(k, l))?;
            let error = Some(fit.interval(at, CHANCE));
            Some(Point { x: f64::from(level.khz) * 1e3, y: fit.value[at], error })
        };
        let mut points: Vec<Point> = kind.levels.iter().enumerate().filter_map(point).collect();
        points.reverse();
        Series { name: format!("{} core, one thread busy", kind.name), shape: LineShape::Line, points }
    });
    Plot {
        title: "A busy core".to_owned(),
        x: axis("clock", "Hz"),
        y: axis("power", "W"),
        series: series.collect(),
        note: "Fitted, with 95 % intervals, at 50 degrees Celsius.".to_owned(),
    }
}

fn idle(fit: &Fit, c: &Calibration) -> Whiskers {
    let word = |u: &Unknown| match u {
        Unknown::Idle(k, s) => {
            let kind = &c.machine.kinds[*k];
            Some(format!("{} core in {}", kind.name, kind.idle[*s].name))
        }
        Unknown::Asleep(s) => Some(format!("package in {}", c.machine.packages[0].idle[*s].name)),
        Unknown::Uncore => Some("package awake, beside its cores".to_owned()),
        Unknown::MemoryRest => Some("memory of a package, at rest".to_owned()),
        _ => None,
    };
    let row = |(at, u): (usize, &Unknown)| {
        let guess = if fit.fitted[at] { "" } else { " (guess)" };
        let name = format!("{}{guess}", word(u)?);
        Some(Whisker { name, value: fit.value[at], ends: Some(fit.interval(at, CHANCE)), mark: None })
    };
    Whiskers {
        title: "Asleep, and around the cores".to_owned(),
        unit: "W".to_owned(),
        zero: Some(0.0),
        rows: fit.unknowns.all.iter().enumerate().filter_map(row).collect(),
        note: "With 95 % intervals.".to_owned(),
    }
}

fn figures(c: &Calibration) -> Table {
    let row = |input: &wattwise_model::machine::figures::MachineInput<'_>| {
        let v = input.value?;
        let cell = |x: f64| format!("{x:.3}");
        let of = input.confidence.word().to_owned();
        Some(vec![input.what.to_owned(), cell(v.nominal), cell(v.low), cell(v.high), v.unit.to_owned(), of])
    };
    let words = ["Figure", "Value", "95 % from", "to", "Unit", "Standing"];
    Table {
        title: "Every figure".to_owned(),
        head: words.map(str::to_owned).to_vec(),
        rows: c.machine.inputs().iter().filter_map(row).collect(),
        note: String::new(),
    }
}
