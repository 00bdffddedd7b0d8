//! The bc10 router board (study 003, 2013): network throughput of an OMAP3530 at each of its five speeds.
//!
//! nuttcp sends to the board, which has all it can do: what a bit takes decides the throughput. Two parts:
//!
//! 1. `A`, in s a megabit, does not depend on the CPU's clock: bus, memory, link. cpufreq moves the CPU's clock alone, the
//!    interconnect and the memory keep theirs.
//! 2. `B`, in cycles a bit, does: at a clock `f` it takes `B / f`.
//!
//! Both come from the throughput at 125 and 250 MHz; the speeds above are predicted. The work then runs on the model
//! machine `omap3530` under `userspace` at each speed, so that the figures are the engine's and not only the formula's.
//! Nothing limits the throughput: 550 and 600 MHz, at which it was measured to *fall*, are predicted too fast, and stay so.

mod left_open;

use crate::printed::{List, MissCause, OurFigures};
use crate::{Basis, Figure, Study, StudyBench, StudyError, beside, figure_table, open, table};
use wattwise_model::workload::{Dist, Pattern, Program, Step, Task, Workload};
use wattwise_page::{Axis, LineShape, Plot, Point, Section, Series};

const PRINTED: &str = include_str!("../../../studies/figures/bc10.csv");

/// The speeds that the study measured at, in MHz, rising.
const MHZ: [u32; 5] = [125, 250, 500, 550, 600];
/// The board's highest speed, in kHz.
const KHZ: u32 = 600_000;
/// How long each speed is looked at, in ns.
const SPAN_NS: u64 = 10_000_000_000;
/// A piece of the stream, in megabits: about what comes in while the board is at it.
const PIECE_MBIT: f64 = 0.05;

/// Published order, the lesser first.
///
/// From 500 MHz on the author finds no difference, so that nothing is in order there.
const ORDERS: [(&str, &str); 4] =
    [("250:mbps", "500:mbps"), ("500:rtt", "250:rtt"), ("600:rtt", "500:rtt"), ("250:tx", "500:tx")];

/// What a megabit takes: `fixed_s` whatever the clock, and `cycles_m` million cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerMegabit {
    /// `A`, in s.
    pub fixed_s: f64,
    /// `B`, in 10^6 cycles.
    pub cycles_m: f64,
}

impl PerMegabit {
    /// From the throughput in Mb/s at two speeds in MHz: two equations, two unknowns.
    pub fn fit((f1, t1): (f64, f64), (f2, t2): (f64, f64)) -> PerMegabit {
        let cycles_m = (1.0 / t1 - 1.0 / t2) / (1.0 / f1 - 1.0 / f2);
        PerMegabit { fixed_s: 1.0 / t1 - cycles_m / f1, cycles_m }
    }

    /// Throughput in Mb/s at a speed in MHz.
    pub fn rate(self, mhz: f64) -> f64 {
        1.0 / (self.fixed_s + self.cycles_m / mhz)
    }
}

/// A stream as long as somebody looks: one that has all of the board's CPU, or one of so many Mb/s.
fn stream(cost: PerMegabit, mbps: Option<f64>) -> Workload {
    let at_top_s = cost.fixed_s + cost.cycles_m * 1e3 / f64::from(KHZ);
    let kcycles = PIECE_MBIT * at_top_s * f64::from(KHZ);
    let pace = mbps.map(|rate| Step::Period((PIECE_MBIT / rate * 1e9) as u64));
    let pattern = Pattern {
        steps: pace.into_iter().chain([Step::Run(Dist::Fixed((kcycles * 1e3) as u64))]).collect(),
        start: Dist::Fixed(0),
        rounds: u64::MAX,
        until_ns: SPAN_NS,
        seed: 1,
        reference_khz: KHZ,
        memory_share: cost.fixed_s / at_top_s,
    };
    Workload::new("nuttcp", "a study's load", vec![Task::new("nuttcp", Program::Pattern(pattern))], SPAN_NS)
}

/// What a policy gives: Mb/s and W.
pub(crate) struct Bc10Seen {
    pub(crate) mbps: f64,
    pub(crate) watts: f64,
}

/// A stream that has all of the CPU.
pub(crate) fn see(bench: &StudyBench, cost: PerMegabit, policy: &str) -> Result<Bc10Seen, StudyError> {
    see_stream(bench, cost, policy, None)
}

/// A stream, paced or not.
pub(crate) fn see_stream(
    bench: &StudyBench,
    cost: PerMegabit,
    policy: &str,
    mbps: Option<f64>,
) -> Result<Bc10Seen, StudyError> {
    let work = stream(cost, mbps);
    let mut sim = bench.simulation(&work, policy, |s| s.initial_khz = KHZ)?;
    let from = sim.run_until(SPAN_NS / 10);
    let to = sim.run_until(SPAN_NS);
    let seconds = (to.elapsed_ns - from.elapsed_ns) as f64 * 1e-9;
    // The engine counts the cycles of the part that goes with the clock.
    Ok(Bc10Seen {
        mbps: (to.cycles - from.cycles) / (cost.cycles_m * 1e6) / seconds,
        watts: (to.energy.total_j() - from.energy.total_j()) / seconds,
    })
}

/// Reruns the study.
///
/// # Errors
/// When the machine model is missing.
pub fn run() -> Result<Study, StudyError> {
    let bench = StudyBench::new("omap3530")?;
    let list = List::read("003", PRINTED);
    let known = |mhz: u32, column: &str| list.published(&format!("{mhz}:{column}")).unwrap_or(f64::NAN);
    let point = |mhz: u32| (f64::from(mhz), known(mhz, "mbps"));
    let cost = PerMegabit::fit(point(125), point(250));
    let mut ours = OurFigures::default();
    let mut results = Vec::new();
    for mhz in MHZ {
        let seen = see(&bench, cost, &format!("userspace:khz={}", mhz * 1000))?;
        ours.set(format!("{mhz}:mbps"), seen.mbps);
        let basis = if mhz <= 250 { Basis::Fitted } else { Basis::Predicted };
        results.push(result(
            format!("throughput at {mhz} MHz"),
            "Mb/s",
            Some(known(mhz, "mbps")),
            seen.mbps,
            basis,
        ));
        results.push(result(format!("power at {mhz} MHz, board"), "W", None, seen.watts, Basis::Predicted));
    }
    beside_throughput(&mut ours, &known);
    listings(&mut ours, &bench);
    governors(&bench, cost, &mut results)?;
    let causes = causes(&ours, &known);
    let open = left_open::questions(&bench, &|mhz| known(mhz, "mbps"))?;
    let (figures, score) = beside(&list, &ours, &causes, &ORDERS);
    let fitted = fitted(cost);
    let differences: Vec<String> = causes.iter().map(|c| c.text.clone()).collect();
    let page = vec![
        Section::Text { title: "What was done".into(), body: what_was_done() },
        chart(&ours, cost, &known),
        figure_table(&results),
        open::section(&open),
        table::printed(&figures),
        Section::Text { title: "Fitted".into(), body: fitted.join("\n\n") },
        Section::Text { title: "What differs, and why".into(), body: differences.join("\n\n") },
    ];
    Ok(Study {
        name: "bc10",
        title: "cpufreq on the bc10 router board (study 003)",
        figures,
        score,
        results,
        tables: Vec::new(),
        charts: Vec::new(),
        fitted,
        differences,
        open,
        page,
    })
}

fn what_was_done() -> String {
    "A stream that keeps the CPU busy runs on the model omap3530 under userspace at each speed. Modelled; nothing was \
     measured here. `wattwise bench throughput` measures it on a machine."
        .to_owned()
}

fn result(what: String, unit: &'static str, published: Option<f64>, modelled: f64, basis: Basis) -> Figure {
    Figure { what, unit, published, published_sd: None, modelled, modelled_sd: None, basis }
}

/// CPU shares, round trip and BogoMIPS, each by a rule with what one or two speeds say.
fn beside_throughput(ours: &mut OurFigures, known: &dyn Fn(u32, &str) -> f64) {
    let mbps = |ours: &OurFigures, mhz: u32| ours.get(&format!("{mhz}:mbps")).unwrap_or(f64::NAN);
    // A round trip waits for the link and for a reply that takes cycles.
    let (slow, next) = (known(125, "rtt"), known(250, "rtt"));
    let ms_mhz = (slow - next) / (1.0 / 125.0 - 1.0 / 250.0);
    let fixed_ms = slow - ms_mhz / 125.0;
    for mhz in MHZ {
        let f = f64::from(mhz);
        // nuttcp's own share is copying, which waits for the memory: so much a megabit, whatever the clock. The sender is a PC.
        for side in ["tx", "rx"] {
            let a_megabit = known(500, side) / known(500, "mbps");
            ours.set(format!("{mhz}:{side}"), a_megabit * mbps(ours, mhz));
        }
        ours.set(format!("{mhz}:rtt"), fixed_ms + ms_mhz / f);
        // The kernel times an empty loop: cycles a turn, nothing else.
        ours.set(format!("{mhz}:bogomips"), known(600, "bogomips") / 600.0 * f);
    }
}

/// What `cpufreq-info` lists: the machine's own figures.
fn listings(ours: &mut OurFigures, bench: &StudyBench) {
    let levels = &bench.machine.kinds[0].levels;
    for level in levels {
        let mhz = level.khz / 1000;
        ours.set(format!("step:{mhz}"), f64::from(mhz));
    }
    let stall = bench.machine.domains[0].transition.stall_ns.iter().max().copied().unwrap_or(0);
    ours.set("latency", stall as f64 * 1e-3);
}

/// What the author left open: what `ondemand` makes of the stream, beside the ends.
fn governors(bench: &StudyBench, cost: PerMegabit, results: &mut Vec<Figure>) -> Result<(), StudyError> {
    for policy in ["performance", "ondemand", "conservative", "powersave"] {
        let seen = see(bench, cost, policy)?;
        results.push(result(format!("throughput under {policy}"), "Mb/s", None, seen.mbps, Basis::Predicted));
        let a_gigabit = seen.watts / seen.mbps * 1e3;
        results.push(result(
            format!("energy a gigabit under {policy}, board"),
            "J",
            None,
            a_gigabit,
            Basis::Predicted,
        ));
    }
    Ok(())
}

fn fitted(cost: PerMegabit) -> Vec<String> {
    vec![
        format!(
            "A = {:.2} ms a megabit and B = {:.2} cycles a bit: to the mean throughput at 125 and 250 MHz. They also give \
             500, 550 and 600 MHz.",
            cost.fixed_s * 1e3,
            cost.cycles_m
        ),
        "Round trip: a fixed part and cycles, to 125 and 250 MHz. They also give the three speeds above."
            .to_owned(),
        "%TX and %RX: so much CPU time a megabit, to 500 MHz. They also give the other four speeds."
            .to_owned(),
        "BogoMIPS: cycles of the kernel's loop, to 600 MHz. They also give the other four speeds.".to_owned(),
    ]
}

/// The speeds at which throughput was measured to fall.
const FALLING: [u32; 2] = [550, 600];

/// Reasons, each where the figures show it.
fn causes(ours: &OurFigures, known: &dyn Fn(u32, &str) -> f64) -> Vec<MissCause> {
    let mut out = Vec::new();
    let of = |mhz: u32| ours.get(&format!("{mhz}:mbps")).unwrap_or(f64::NAN);
    let falls = FALLING.iter().all(|&mhz| known(mhz, "mbps") < known(500, "mbps"));
    let misses = FALLING.iter().all(|&mhz| of(mhz) > 1.1 * known(mhz, "mbps"));
    if falls && misses {
        // Tried: the pipe carries no more than at 550 MHz.
        let ceiling = known(550, "mbps");
        let off = |mhz: u32| (of(mhz).min(ceiling) / known(mhz, "mbps") - 1.0) * 100.0;
        out.push(MissCause {
            about: FALLING.iter().flat_map(|m| [format!("{m}:mbps"), format!("{m}:tx"), format!("{m}:rx")]).collect(),
            text: format!(
                "The measured throughput falls above 500 MHz; a bit that takes fewer cycles' time cannot explain that. Tried: \
                 a ceiling of the link or the peer at 550 MHz's {ceiling:.1} Mb/s gives {} % at 500 and {} % at 600 MHz, but \
                 a ceiling is flat, and does not fall. The ten runs of a speed follow each other and drift; the author finds \
                 no difference from 500 MHz on.",
                wattwise_figure::signed(off(500), 1),
                wattwise_figure::signed(off(600), 1)
            ),
        });
    }
    out
}

/// Throughput over the clock.
fn chart(ours: &OurFigures, cost: PerMegabit, known: &dyn Fn(u32, &str) -> f64) -> Section {
    let series = |name: &str, shape: LineShape, at: &dyn Fn(u32) -> f64| Series {
        name: name.into(),
        shape,
        points: MHZ.iter().map(|&m| Point::from((f64::from(m), at(m)))).collect(),
    };
    let axis = |name: &str, unit: &str| Axis { name: name.into(), unit: unit.into(), ..Axis::default() };
    Section::Steps(Plot {
        title: "Throughput over the clock".into(),
        x: axis("clock", "MHz"),
        y: axis("throughput", "Mb/s"),
        series: vec![
            series("published", LineShape::Points, &|m| known(m, "mbps")),
            series("modelled", LineShape::Line, &|m| ours.get(&format!("{m}:mbps")).unwrap_or(f64::NAN)),
            series("by the formula", LineShape::Points, &|m| cost.rate(f64::from(m))),
        ],
        note: "Fitted: 125 and 250 MHz.".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two equations by hand: 1/16.0988 = A + B/125, 1/30.8194 = A + B/250.
    #[test]
    fn the_prediction_at_500_mhz_is_the_one_by_hand() {
        let cost = PerMegabit::fit((125.0, 16.0988), (250.0, 30.8194));
        let b = (1.0 / 16.0988 - 1.0 / 30.8194) * 250.0;
        assert!((cost.cycles_m - b).abs() < 1e-9 && (b - 7.417).abs() < 0.001, "{cost:?}");
        assert!((cost.rate(125.0) - 16.0988).abs() < 1e-9);
        assert!((cost.rate(500.0) - 56.78).abs() < 0.01, "{}", cost.rate(500.0));
    }

    /// The engine gives what the formula gives, at every speed.
    #[test]
    fn the_engine_and_the_formula_agree() {
        let study = run().expect("bundled");
        let cost = PerMegabit::fit((125.0, 16.0988), (250.0, 30.8194));
        for mhz in MHZ {
            let at = format!("{mhz} MHz Avg.");
            let of = |f: &&crate::printed::PrintedFigure| f.location == at && f.quantity == "Mbps";
            let ours = study.figures.iter().find(of).and_then(|f| f.ours).expect("a row");
            let by_hand = cost.rate(f64::from(mhz));
            assert!((ours / by_hand - 1.0).abs() < 0.01, "{mhz} MHz: {ours} for {by_hand}");
        }
    }

    #[test]
    fn a_fall_is_explained_only_where_it_was_measured_and_missed() {
        let told = |at_600: f64, ours_600: f64| {
            let known =
                move |mhz: u32, _: &str| if mhz == 600 { at_600 } else { 50.0 + f64::from(mhz == 500) * 5.0 };
            let mut ours = OurFigures::default();
            for (mhz, v) in [(500, 55.0), (550, 60.0), (600, ours_600)] {
                ours.set(format!("{mhz}:mbps"), v);
            }
            causes(&ours, &known).len()
        };
        assert_eq!(told(48.0, 65.0), 1);
        assert_eq!(told(60.0, 65.0), 0, "it does not fall");
        assert_eq!(told(48.0, 50.0), 0, "it is not missed");
    }
}
