//! Which draws of a machine go with what calibrates its programs.
//!
//! The row that calibrates a program is run in more draws than the others ([`CANDIDATES`]). In each, it tells the program's
//! [`Factors`] and how surprising these are. Programs differ, but the machine that they ran on is one: a draw's weight is the product
//! of what all of a table's programs on it say, and by these weights the draws are chosen in which all else is run
//! (importance resampling; Rubin 1988).

use super::factors::{BUSY, Factors};
use super::table::{Measured, Quantity, Row, Scope, Setting, Table, Unit};
use std::collections::BTreeMap;
use wattwise_advice::metered::Metered;
use wattwise_model::machine::MachineModel;

/// Candidates for each draw that is chosen, of a machine on which something calibrates: more are sharper, and take longer.
pub(super) const CANDIDATES: u64 = 4;
/// The share of the candidates that count at least: chosen, not fitted to a score.
const ENOUGH: f64 = 0.25;
/// Runs of a calibrating row with its program's watts, each of which corrects them: what a limit hides shows bit by bit.
const CORRECTIONS: usize = 6;
/// Watts that are corrected by less stay.
const CORRECT: f64 = 0.01;

/// A setting's runs: the nominal one first, then the draws; or why it cannot be run.
pub(super) type Runs = Result<Vec<Metered>, String>;

/// Draws by number, each with its weight; the first is the nominal machine, which is no draw.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Draws {
    pub(super) numbers: Vec<u64>,
    weights: Vec<f64>,
}

impl Draws {
    /// So many draws, all alike.
    pub(super) fn alike(count: u64) -> Draws {
        Draws { numbers: (0..=count).collect(), weights: vec![1.0; count as usize + 1] }
    }

    /// What these draws came to, of all candidates' runs.
    pub(super) fn of<T: Copy>(&self, candidates: &[T]) -> Vec<T> {
        self.numbers.iter().filter_map(|n| candidates.get(*n as usize).copied()).collect()
    }

    /// These draws' factors, with their weights, of all candidates'.
    pub(super) fn weighted(&self, candidates: &[Factors]) -> Vec<Factors> {
        let all = self.of(candidates).into_iter().zip(&self.weights);
        all.map(|(f, &weight)| Factors { weight, ..f }).collect()
    }

    /// Systematic resampling: `count` draws of the candidates, taken at even steps along the sum of their weights. A candidate that is met several
    /// times is kept once, with that number as its weight. The first logarithm is the nominal machine's and is not used.
    fn chosen(logarithms: &[f64], count: u64) -> Draws {
        let weights = tempered(&logarithms[1..]);
        let step = weights.iter().sum::<f64>() / count as f64;
        let mut draws = Draws { numbers: vec![0], weights: vec![1.0] };
        let (mut passed, mut sum) = (0, 0.0);
        for (number, weight) in (1..).zip(weights) {
            sum += weight;
            let until = ((sum / step - 0.5).ceil().max(0.0) as u64).min(count);
            if until > passed {
                draws.numbers.push(number);
                draws.weights.push((until - passed) as f64);
                passed = until;
            }
        }
        draws
    }
}

/// The published watts of calibrating rows, by scope: their mean.
fn published_watts(table: &Table, rows: &[&Row], scope: Scope) -> Option<f64> {
    let at = |wanted: &dyn Fn(&Quantity) -> bool| {
        let place = table.quantities.iter().position(wanted)?;
        let values: Vec<f64> =
            rows.iter().filter_map(|r| r.values[place].map(|m: Measured| m.value)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let watts = at(&|q| q.unit == Unit::W && q.of == scope);
    let joules = || Some(at(&|q| q.unit == Unit::J && q.of == scope)? / at(&|q| q.unit == Unit::S)?);
    watts.or_else(joules)
}

/// A program that a row calibrates.
pub(super) struct Calibration<'t> {
    pub(super) table: usize,
    pub(super) program: &'t str,
    pub(super) setting: &'t Setting,
    /// The row's published watts, by scope.
    watts: BTreeMap<Scope, f64>,
    /// By candidate; 0 is nominal.
    pub(super) factors: Vec<Factors>,
}

impl Calibration<'_> {
    /// The text of the machine that its row ran on.
    pub(super) fn machine(&self) -> &str {
        &self.setting.machine
    }

    /// Whether the row's packages drew more than their limit allows even for a moment: then no such limit was in force on the
    /// machine that was measured. Boards for desktops often lift it.
    pub(super) fn is_beyond_limit(&self, machine: &MachineModel) -> bool {
        let limit = machine.packages.iter().find_map(|p| p.limit);
        let most = limit.map_or(f64::INFINITY, |l| if l.tau_s > 0.0 { l.short_w } else { l.long_w });
        self.watts.get(&Scope::Package).is_some_and(|w| *w > most * machine.packages.len() as f64)
    }

    /// Why no draw explains the row: its watts are out of reach of all of them, as where the column is in another unit.
    pub(super) fn unexplained(&self, ran: &[Metered]) -> Option<String> {
        let reached = self.factors.iter().any(|f| f.busy > BUSY.0 && f.busy < BUSY.1);
        let metered = [Scope::Package, Scope::PackageDram].into_iter().find_map(|s| self.watts.get(&s))?;
        let model = ran.iter().map(|r| Factors::default().package_w(r));
        let (low, high) = model.fold((f64::INFINITY, 0.0), |(l, h): (f64, f64), w| (l.min(w), h.max(w)));
        (!reached && !(low..=high).contains(metered)).then(|| {
            format!(
                "the row that calibrates {} has {metered:.3} W, the model {low:.1} to {high:.1}: expected watts, as by the quantity's key scale",
                if self.program.is_empty() { "it" } else { self.program }
            )
        })
    }

    /// Corrects the factors by running with them. Under a limit of power common work is slowed where the program may not be, and
    /// what the row tells of watts is told of another clock.
    pub(super) fn correct(&mut self, run: impl Fn(&[Factors]) -> Runs) {
        for _ in 0..CORRECTIONS {
            let Ok(ran) = run(&self.factors) else { return };
            let steps: Vec<Factors> =
                ran.iter().map(|r| Factors::of(&|scope| self.watts.get(&scope).copied(), r)).collect();
            self.factors.iter_mut().zip(&steps).for_each(|(f, step)| *f = f.corrected(step));
            // One that still draws too little is held at the limit: it may ask for any more.
            if steps.iter().all(|step| step.busy.ln() > -CORRECT) {
                return;
            }
        }
    }
}

/// The programs of a table that a row calibrates and that could be run.
pub(super) fn calibrations<'t>(
    at: usize,
    table: &'t Table,
    runs: &BTreeMap<&Setting, Runs>,
) -> Vec<Calibration<'t>> {
    let mut by_program: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in table.rows.iter().filter(|r| r.calibrates) {
        by_program.entry(&row.program).or_default().push(row);
    }
    let of = |(program, rows): (&'t str, Vec<&'t Row>)| {
        let setting = rows[0].setting.as_ref().ok()?;
        let ran = runs.get(setting)?.as_ref().ok()?;
        let watts: BTreeMap<Scope, f64> =
            Scope::ALL.into_iter().filter_map(|s| Some((s, published_watts(table, &rows, s)?))).collect();
        let factors = ran.iter().map(|r| Factors::of(&|scope| watts.get(&scope).copied(), r)).collect();
        Some(Calibration { table: at, program, setting, watts, factors })
    };
    by_program.into_iter().filter_map(of).collect()
}

/// `count` draws of each machine, by what all programs of a table on it say; by table and the machine's text.
pub(super) fn resampled<'c>(
    calibrated: &'c [Calibration<'_>],
    count: u64,
) -> BTreeMap<(usize, &'c str), Draws> {
    let mut together: BTreeMap<(usize, &str), Vec<f64>> = BTreeMap::new();
    for c in calibrated {
        let sums = together.entry((c.table, c.machine())).or_insert_with(|| vec![0.0; c.factors.len()]);
        sums.iter_mut().zip(&c.factors).for_each(|(sum, f)| *sum += f.weight.ln());
    }
    together.into_iter().map(|(machine, sums)| (machine, Draws::chosen(&sums, count))).collect()
}

/// Weights by their logarithms; to a power below 1 where the greatest would decide alone: as many as [`ENOUGH`] says count at least, by
/// Kish's effective number, (sum w)^2 / sum w^2. Without it a row far from all draws is predicted by the one draw nearest to it.
fn tempered(logarithms: &[f64]) -> Vec<f64> {
    let most = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights = |power: f64| logarithms.iter().map(move |l| (power * (l - most)).exp());
    let effective =
        |power: f64| weights(power).sum::<f64>().powi(2) / weights(power).map(|w| w * w).sum::<f64>();
    let wanted = ENOUGH * logarithms.len() as f64;
    if logarithms.is_empty() || effective(1.0) >= wanted {
        return weights(1.0).collect();
    }
    // The effective number falls as the power rises: from all of them at 0.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if effective(middle) >= wanted { low = middle } else { high = middle }
    }
    weights(low).collect()
}

#[cfg(test)]
mod tests {
    use super::super::factors::RAN;
    use super::*;

    fn calibration(package_w: f64) -> Calibration<'static> {
        static SETTING: std::sync::LazyLock<Setting> = std::sync::LazyLock::new(|| Setting {
            machine: "".into(),
            works: Vec::new(),
            policy: String::new(),
        });
        let watts = BTreeMap::from([(Scope::Package, package_w)]);
        let factors = vec![Factors::of(&|s| (s == Scope::Package).then_some(package_w), &RAN)];
        Calibration { table: 0, program: "p", setting: &SETTING, watts, factors }
    }

    /// A machine of 4 W beside a core that asks for `wants` W at its full clock, under a limit of 10 W: a run with factors.
    fn under_a_limit(wants: f64, factors: &[Factors]) -> Runs {
        let of = |f: &Factors| Metered { busy_j: 2.0 * (f.busy * wants).min(6.0), idle_j: 0.0, ..RAN };
        Ok(factors.iter().map(of).collect())
    }

    /// By hand: common work asks for 12 W and gets 6 of them. A row of 7 W has 3 W of the core: a quarter of what common work asks
    /// for, and not half of what it gets.
    #[test]
    fn a_program_below_the_limit_is_told_from_common_work_that_is_held_by_it() {
        let run = |factors: &[Factors]| under_a_limit(12.0, factors);
        let held = run(&[Factors::default()]).expect("runs");
        let mut c = calibration(7.0);
        c.factors = vec![Factors::of(&|s| c.watts.get(&s).copied(), &held[0])];
        assert!((c.factors[0].busy - 0.5).abs() < 1e-9, "{:?}", c.factors);
        c.correct(run);
        assert!((c.factors[0].busy - 0.25).abs() < 0.01, "{:?}", c.factors);
        // One that is at the limit may draw any more: it stays as it is.
        let mut c = calibration(10.0);
        c.factors = vec![Factors::of(&|s| c.watts.get(&s).copied(), &held[0])];
        c.correct(run);
        assert!((c.factors[0].busy - 1.0).abs() < 0.01, "{:?}", c.factors);
    }

    #[test]
    fn watts_in_another_unit_are_noticed() {
        assert_eq!(calibration(30.0).unexplained(&[RAN]), None);
        for joules in [3000.0, 0.0004] {
            let why = calibration(joules).unexplained(&[RAN]).expect("out of reach");
            assert!(why.contains("the model 15.0 to 15.0") && why.contains("scale"), "{why}");
        }
    }

    /// Weights of 1, 1e-2, 1e-4 ... have 1.02 effective draws of 12. By hand, to the power p they are a geometric series of ratio
    /// r = 100^-p: (1 + r) / (1 - r) = 3 effective ones at r = 1/2, but for the end of the series (0.5^12).
    #[test]
    fn no_draw_decides_alone() {
        let series = |ratio: f64| -> Vec<f64> { (0..12).map(|n| f64::from(n) * ratio.ln()).collect() };
        let few = tempered(&series(1e-2));
        assert!((few[1] / few[0] - 0.5).abs() < 1e-3, "{few:?}");
        let enough = tempered(&series(0.9));
        assert!(
            (enough[1] - 0.9).abs() < 1e-12 && (enough[11] - 0.9f64.powi(11)).abs() < 1e-12,
            "{enough:?}"
        );
    }

    /// By hand: of weights 4, 1, 2, 1 the steps at 1/8, 3/8, 5/8 and 7/8 of their sum meet the first twice, the third and the fourth.
    #[test]
    fn draws_come_as_often_as_their_weights_say() {
        let logarithms = [9.0, 4f64.ln(), 0.0, 2f64.ln(), 0.0];
        let draws = Draws::chosen(&logarithms, 4);
        assert_eq!((draws.numbers, draws.weights), (vec![0, 1, 3, 4], vec![1.0, 2.0, 1.0, 1.0]));
        let all = Draws::chosen(&[0.0; 9], 8);
        assert_eq!(all, Draws::alike(8));
    }

    /// Two programs of one machine, of which one says that the first draw is likely and one that the second is not: together they choose
    /// as their product does.
    #[test]
    fn programs_of_one_machine_choose_its_draws_together() {
        let weigh = |weights: [f64; 4]| Calibration {
            factors: std::iter::once(1.0)
                .chain(weights)
                .map(|weight| Factors { weight, ..Factors::default() })
                .collect(),
            ..calibration(1.0)
        };
        let both = [weigh([1.0, 1.0, 1e-3, 1e-3]), weigh([1.0, 1e-3, 1.0, 1e-3])];
        let chosen = resampled(&both, 8);
        assert_eq!(chosen[&(0, "")].numbers, [0, 1]);
        assert_eq!(resampled(&both[..1], 8)[&(0, "")].numbers, [0, 1, 2]);
    }

    #[test]
    fn a_limit_that_the_row_is_beyond_was_not_in_force() {
        let text = "name = 'x'\nclass = 'desktop'\ncores = 6\nmhz = [800, 3200]\ntdp_w = 65\nidle = 'skylake'\nsource = 's'\n";
        let machine =
            wattwise_replay::library::parsed(&format!("[sheet]\n{text}"), "machine").expect("sound");
        // The sheet's short limit is 1.25 of the design power: 81.25 W.
        assert!(!calibration(81.0).is_beyond_limit(&machine) && calibration(82.0).is_beyond_limit(&machine));
    }
}
