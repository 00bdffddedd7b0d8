//! Solene, Measuring power efficiency of a CPU frequency scheduler on OpenBSD (2021): one build under
//! `auto` and under a `powersaving` policy, charged over equal time.
//!
//! The build keeps all cores busy for 871 s at the highest level. Four published figures fit the
//! model (its file says which and how); the table's totals and the two rows that the author planned,
//! lowest and highest mode, are what the model says then.

mod left_open;

use crate::printed::{List, OurFigures};
use crate::{
    Basis, Figure, Study, StudyBench, StudyError, beside, figure_table, number, open, rows, table, workload,
};
use wattwise_model::workload::{Dist, Step};
use wattwise_page::{Bar, Bars, Section};
use wattwise_policy::PowerSource;

const PUBLISHED: &str = include_str!("../../../studies/openbsd_gzdoom.csv");
const PRINTED: &str = include_str!("../../../studies/figures/openbsd.csv");

/// The build's length at the highest level, in s: the published time under `auto`.
const BUILD_S: u64 = 871;
/// The equal window, in s: the published time under `powersaving`.
pub(crate) const WINDOW_S: f64 = 1123.0;
/// Pieces of work each core does: a build is many short jobs.
const JOBS: u64 = 200;

const WH: f64 = 3600.0;

/// One policy's build.
pub(crate) struct PublishedRow {
    pub(crate) compile_s: f64,
    idle_s: f64,
    pub(crate) compile_wh: f64,
    pub(crate) idle_wh: f64,
}

pub(crate) fn build(bench: &StudyBench, policy: &str, window_s: f64) -> Result<PublishedRow, StudyError> {
    let khz = bench.machine.kinds[0].levels[0].khz;
    let cycles = u64::from(khz) * 1000 * BUILD_S / JOBS;
    let steps = || vec![Step::Run(Dist::Fixed(cycles))];
    let tasks = bench.machine.cpus.iter().map(|_| (0, JOBS, steps())).collect();
    let w = workload("gzdoom", khz, tasks);
    let mut sim = bench.simulation(&w, policy, |s| s.source = PowerSource::Battery)?;
    let own = sim.run_to_completion(100_000 * 1_000_000_000)?;
    let compile_s = own.elapsed_ns as f64 * 1e-9;
    let window = sim.run_until((window_s.max(compile_s) * 1e9) as u64);
    Ok(PublishedRow {
        compile_s,
        idle_s: window.elapsed_ns as f64 * 1e-9 - compile_s,
        compile_wh: own.energy.total_j() / WH,
        idle_wh: (window.energy.total_j() - own.energy.total_j()) / WH,
    })
}

/// Reruns the study.
///
/// # Errors
/// When the machine model or a policy is missing.
pub fn run() -> Result<Study, StudyError> {
    let bench = StudyBench::new("openbsd-laptop")?;
    let mut figures = Vec::new();
    let mut groups = Vec::new();
    let cases = [
        ("powersaving", "powersaving", "powersaving"),
        ("auto", "openbsd-auto:version=2021", "auto"),
        ("highest mode (apm -H)", "performance", ""),
        ("lowest mode (apm -L)", "powersave", ""),
    ];
    for (what, policy, row) in cases {
        let r = build(&bench, policy, WINDOW_S)?;
        let known: Option<Vec<f64>> =
            rows(PUBLISHED).find(|c| c[0] == row).map(|c| c[1..].iter().map(|x| number(x)).collect());
        // Four figures were fitted: the time under powersaving and the three energies that are not
        // zero. The time under auto defines the job; remainders and totals follow from the rest.
        use Basis::{Construction, Fitted, Predicted};
        let basis = match row {
            "powersaving" => [Fitted, Construction, Fitted, Construction, Construction],
            "auto" => [Construction, Construction, Fitted, Fitted, Construction],
            _ => [Predicted; 5],
        };
        let values = [
            ("build", "s", r.compile_s),
            ("idle after it", "s", r.idle_s),
            ("build", "Wh", r.compile_wh),
            ("idle after it", "Wh", r.idle_wh),
            ("total over the window", "Wh", r.compile_wh + r.idle_wh),
        ];
        for (i, (part, unit, modelled)) in values.into_iter().enumerate() {
            figures.push(Figure {
                what: format!("{what}: {part}"),
                unit,
                published: known.as_ref().map(|k| k[i]),
                published_sd: None,
                modelled,
                modelled_sd: None,
                basis: basis[i],
            });
        }
        let published = known.as_ref().map(|k| (k[4], None));
        groups.push((what.to_owned(), vec![published, Some((r.compile_wh + r.idle_wh, None))]));
    }
    let fitted = bench
        .machine
        .provenance
        .iter()
        .filter(|f| f.confidence == wattwise_model::machine::Confidence::Fitted)
        .map(|f| format!("{}: {}", f.what, f.source))
        .collect::<Vec<_>>();
    let differences = differences(&figures);
    let ours = ours(&figures);
    let (printed, score) = beside(&List::read("001", PRINTED), &ours, &[], &[]);
    let mut page = page(&figures, &fitted, &differences, groups);
    let open = left_open::questions()?;
    page.push(open::section(&open));
    page.push(table::printed(&printed));
    Ok(Study {
        name: "openbsd",
        title: "OpenBSD battery policies (2021): one build, equal time",
        figures: printed,
        score,
        results: figures,
        tables: Vec::new(),
        charts: Vec::new(),
        fitted,
        differences,
        open,
        page,
    })
}

/// By the keys of the printed figures.
fn ours(figures: &[Figure]) -> OurFigures {
    let mut ours = OurFigures::default();
    for f in figures {
        ours.set(format!("{}:{}", f.what.replacen(": ", ":", 1), f.unit), f.modelled);
    }
    let total = |who: &str| ours.get(&format!("{who}:total over the window:Wh")).unwrap_or(f64::NAN);
    let saving = (1.0 - total("powersaving") / total("auto")) * 100.0;
    ours.set("saving", saving);
    ours
}

/// The study as a page; `groups` are the bars, published and modelled.
fn page(
    figures: &[Figure],
    fitted: &[String],
    differences: &[String],
    groups: Vec<(String, Vec<Option<Bar>>)>,
) -> Vec<Section> {
    vec![
        Section::Text {
            title: "What was done".into(),
            body: "games/gzdoom is built on all cores, on battery; then the machine idles until 1123 s are over. \
                   Modelled on openbsd-laptop; nothing was measured here."
                .into(),
        },
        figure_table(figures),
        Section::Text { title: "Fitted".into(), body: fitted.join("\n\n") },
        Section::Text { title: "What differs, and why".into(), body: differences.join("\n\n") },
        Section::Bars(Bars {
            title: "Energy over the window".into(),
            unit: "Wh".into(),
            series: vec!["published".into(), "modelled".into()],
            groups,
            note: match lowest_beyond_window(figures) {
                Some(_) => "The lowest mode: over its own time, which is longer than the window.".into(),
                None => String::new(),
            },
        }),
    ]
}

/// What the figures show, and what they rest on.
fn differences(figures: &[Figure]) -> Vec<String> {
    let of = |key: String| figures.iter().find(|f| f.what == key).map_or(f64::NAN, |f| f.modelled);
    let total = |what: &str| of(format!("{what}: total over the window"));
    let (powersaving, auto) = (total("powersaving"), total("auto"));
    let less = (1.0 - powersaving / auto) * 100.0;
    let mut first = String::from("One run each was published.");
    let predicted = |f: &Figure| f.published.is_some() && f.basis == Basis::Predicted;
    if !figures.iter().any(predicted) {
        first = "Of the published table nothing is left to predict: four figures were fitted and the others follow from \
                 them, so that the agreement of its rows proves only that the accounts add up. "
            .to_owned()
            + &first;
    }
    first += &format!(
        " The model gives {powersaving:.2} Wh for powersaving and {auto:.2} Wh for auto over the same time: {:.1} % {}, \
         where the article says 6.90 % less. (Its own figures give 1 - 5.90 / 6.34 = 6.94 %.)",
        less.abs(),
        if less < 0.0 { "more" } else { "less" }
    );
    let mut out = vec![
        first,
        "The level of the lowest mode and the power between the fitted levels rest on a guess that the model's file \
         states; the two planned rows are as good as that guess."
            .to_owned(),
    ];
    if let Some(lowest_s) = lowest_beyond_window(figures) {
        out.push(format!(
            "The lowest mode takes {lowest_s:.0} s and does not finish within the window of {WINDOW_S:.0} s: its total is \
             over its own, longer time and must not be set against the others."
        ));
    }
    out
}

/// How long the lowest mode builds, in s, where that is longer than the window.
fn lowest_beyond_window(figures: &[Figure]) -> Option<f64> {
    let lowest = figures.iter().find(|f| f.what == "lowest mode (apm -L): build" && f.unit == "s")?;
    (lowest.modelled > WINDOW_S).then_some(lowest.modelled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(what: &str, unit: &'static str, modelled: f64, basis: Basis) -> Figure {
        Figure {
            what: what.to_owned(),
            unit,
            published: Some(6.0),
            published_sd: None,
            modelled,
            modelled_sd: None,
            basis,
        }
    }

    #[test]
    fn what_differs_follows_from_the_figures() {
        let told = |powersaving: f64, lowest_s: f64, basis: Basis| {
            differences(&[
                figure("powersaving: total over the window", "Wh", powersaving, basis),
                figure("auto: total over the window", "Wh", 6.34, Basis::Construction),
                figure("lowest mode (apm -L): build", "s", lowest_s, Basis::Fitted),
            ])
            .join("\n")
        };
        let fitted = told(5.9, 2000.0, Basis::Construction);
        for part in ["nothing is left to predict", "6.9 % less, where", "takes 2000 s and does not finish"] {
            assert!(fitted.contains(part), "{part}: {fitted}");
        }
        let other = told(6.5, 1100.0, Basis::Predicted);
        for part in ["nothing is left to predict", "does not finish"] {
            assert!(!other.contains(part), "{part}: {other}");
        }
        assert!(other.contains("2.5 % more, where"), "{other}");
    }
}
