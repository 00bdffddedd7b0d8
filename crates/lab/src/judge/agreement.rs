//! How far two records of the same run may lie apart: the kernel's and the model's.
//!
//! A cell is one load under one governor. It is held against four criteria:
//!
//! | criterion | a cell agrees when |
//! |---|---|
//! | levels | the time at every level of every domain is within 3 points |
//! | changes | the number of changes is within a tenth, or within two a domain |
//! | order | every domain went through the same levels in the same order |
//! | idle | the share of every idle state is within 3 points |
//!
//! `performance`, `powersave` and `userspace` set one level and keep it. Their cells agree in levels, changes and
//! order whatever the model does, so they prove nothing there. They are counted apart, and one that differs is a
//! fault of the recording or of the replay. Idle states are chosen in every cell.
//!
//! # The limits
//!
//! No model can follow the kernel further than the kernel follows itself. Two boots of the same kernel begin their
//! loads at another moment of the tick, and a load that sits at a threshold falls to one side or the other. So two
//! boots were held against each other by the same criteria (`cargo lab NAME --twice`), and the limits come from there.
//! Of 48 cells agreed, and of those that decide something:
//!
//! | kernel against itself | levels | changes | order | idle |
//! |---|---|---|---|---|
//! | one CPU, `menu` | 48: 24 of 24, worst 0.2 points | 24 of 24 | 48: 24 of 24 | 41 to 46 of 48, worst 39.7 points |
//! | one CPU, `ladder` | 47: 23 of 24, worst 11.5 points | 21 of 24 | 45: 21 of 24 | 42 of 48, worst 10.1 points |
//! | four CPUs | 38: 14 of 24, worst 98.8 points | 45: 21 of 24 | 36: 12 of 24 | 28 of 48 |
//!
//! On one CPU the changes are derived: cells with the same order have the same number of changes. The idle states of `menu` are
//! of 16 pairs of boots (24 November 2026): under steady 90 % and periods of 1 ms the kernel stays in one of two patterns, by how it
//! began, and each boot begins otherwise. The figures of four CPUs are `menu`'s, and of two such pairs of boots the lower one's; `ladder` is held to them too.
//!
//! - **How many cells must agree** ([`AgreementCount`]): the kernel's own number less a margin. One pair of boots is one throw,
//!   and the model is held against a third boot. On one CPU the margin is the spread of the model's number over seven
//!   boots: 47 or 48 in levels, 44 to 48 in order. In idle states of `menu` the kernel's best pair counts, since the model is nearer
//!   to each boot than most boots are to each other: 43 to 48 in 28 boots, median 46. Changes have as much as levels. On four CPUs the margin is one cell: the number is already the lower of two, and the model has the
//!   recording's own moments, which another boot has not.
//! - **Several boots decide.** A margin makes one boot's chance small, not nought. A boot that is out is followed by another, and the lab fails if all
//!   are out: a fault of the model is in each. On one CPU under `menu` there are three: of 28 boots two had fewer than 44 idle states, one right after the
//!   other. Elsewhere there are two.
//! - **How far one cell may be off** ([`AgreementLimits::levels_points`], [`AgreementLimits::idle_points`], [`changes_far`]): the count
//!   lets some cells differ, and this bounds them. On one CPU the limit is the kernel's worst cell and about a
//!   third more: 15 points at a level for both idle governors; in an idle state 50 for `menu` and 15 for `ladder`. On four CPUs the worst of every cell is not known. There it is
//!   the worst that any comparison gave, model or kernel, and about a third more: 17.5 and 23.1 points give 25 and 30.
//! - **Order has no outer limit**: one change more or less makes it differ, and changes and levels bound the rest.
//! - **One cell's levels are not bounded** on four CPUs, the build under `schedutil`: no CPU of a build stops its
//!   tick, so none falls, and a level once passed by one part in a hundred is kept to the end. There the kernel is 98.8
//!   points from itself. Its changes are bounded, and it counts.

use crate::verdict::JudgeTold;

/// The aim, in points: at every level, and in every idle state.
const AIM_POINTS: f64 = 3.0;

/// Of the larger number of changes: as close as agreement asks.
const CHANGES_CLOSE: f64 = 0.1;
/// Of the larger number of changes: as far as any cell may be. `ondemand` at steady 60 % on four CPUs, which sits at its
/// threshold, has had 38 changes and 70.
const CHANGES_FAR: f64 = 0.5;
/// Changes a domain that are no difference: a handful has no tenth.
const FEW_CHANGES: f64 = 2.0;

/// Governors that set one level at their start and never decide again.
const FIXED: [&str; 3] = ["performance", "powersave", "userspace"];

/// How far the two sides of one run are apart.
#[derive(Clone, Debug)]
pub(crate) struct AgreementCell {
    pub(crate) name: String,
    pub(crate) governor: String,
    pub(crate) load: String,
    /// Largest difference of a level's share of the time in any domain, in points.
    pub(crate) levels_points: f64,
    /// Changes of speed in all domains, on either side.
    pub(crate) changes: (u64, u64),
    /// Domains that went through the same levels in the same order.
    pub(crate) same_order: usize,
    pub(crate) domains: usize,
    /// Largest difference of an idle state's share of all choices, in points.
    pub(crate) idle_points: f64,
}

impl AgreementCell {
    /// The governor's level is fixed: its speeds agree by construction.
    fn fixed(&self) -> bool {
        FIXED.contains(&self.governor.as_str())
    }

    /// Changes are apart by no more than a share of the larger number, or a few a domain.
    fn changes_within(&self, share: f64, few: f64) -> bool {
        let (a, b) = self.changes;
        a.abs_diff(b) as f64 <= (a.max(b) as f64 * share).max(few * self.domains as f64)
    }
}

/// More than half of the changes are missing on one side, and more than twice a few.
fn changes_far(cell: &AgreementCell) -> bool {
    !cell.changes_within(CHANGES_FAR, 2.0 * FEW_CHANGES)
}

/// What is judged.
struct Criterion {
    name: &'static str,
    says: &'static str,
    /// Whether it looks at speeds, which a fixed governor does not decide.
    speeds: bool,
    agrees: fn(&AgreementCell) -> bool,
    count: fn(&AgreementLimits) -> AgreementCount,
}

const CRITERIA: [Criterion; 4] = [
    Criterion {
        name: "levels",
        says: "within 3 points at every level",
        speeds: true,
        agrees: |c| c.levels_points <= AIM_POINTS,
        count: |l| l.levels,
    },
    Criterion {
        name: "changes",
        says: "within a tenth of the changes, or two a CPU",
        speeds: true,
        agrees: |c| c.changes_within(CHANGES_CLOSE, FEW_CHANGES),
        count: |l| l.changes,
    },
    Criterion {
        name: "order",
        says: "with the same levels in the same order on every CPU",
        speeds: true,
        agrees: |c| c.same_order == c.domains,
        count: |l| l.order,
    },
    Criterion {
        name: "idle",
        says: "within 3 points in every idle state",
        speeds: false,
        agrees: |c| c.idle_points <= AIM_POINTS,
        count: |l| l.idle,
    },
];

impl Criterion {
    /// Cells in which something is decided that it looks at, and the others.
    fn split<'a>(&self, cells: &'a [AgreementCell]) -> (Vec<&'a AgreementCell>, Vec<&'a AgreementCell>) {
        cells.iter().partition(|c| !(self.speeds && c.fixed()))
    }

    fn agreeing(&self, cells: &[&AgreementCell]) -> usize {
        cells.iter().filter(|c| (self.agrees)(c)).count()
    }

    /// The line for people.
    fn figure(&self, cells: &[AgreementCell]) -> String {
        let (deciding, constructed) = self.split(cells);
        let mut line = format!(
            "{}: {} of {} cells that decide something {}",
            self.name,
            self.agreeing(&deciding),
            deciding.len(),
            self.says
        );
        if !constructed.is_empty() {
            line += &format!(", {} by construction", self.agreeing(&constructed));
        }
        line
    }
}

/// How many of the cells that decide something must agree.
#[derive(Clone, Copy)]
struct AgreementCount {
    /// There are so many.
    of: usize,
    /// So many agree when the kernel is held against itself.
    kernel: usize,
    /// So many fewer may agree with the model.
    margin: usize,
}

impl AgreementCount {
    const fn least(self) -> usize {
        self.kernel - self.margin
    }
}

/// What a scenario's table is judged by; the reasons are at the [head](self).
pub(crate) struct AgreementLimits {
    levels: AgreementCount,
    changes: AgreementCount,
    order: AgreementCount,
    idle: AgreementCount,
    /// No cell may be further off at any level, in points.
    levels_points: f64,
    /// No cell may be further off in any idle state, in points.
    idle_points: f64,
    /// Governor and load of cells whose levels are not bounded.
    unbounded: &'static [(&'static str, &'static str)],
}

/// One CPU under `menu`.
pub(crate) const MENU: AgreementLimits = AgreementLimits {
    levels: AgreementCount { of: 24, kernel: 24, margin: 1 },
    changes: AgreementCount { of: 24, kernel: 24, margin: 1 },
    order: AgreementCount { of: 24, kernel: 24, margin: 4 },
    idle: AgreementCount { of: 48, kernel: 46, margin: 2 },
    levels_points: 15.0,
    idle_points: 50.0,
    unbounded: &[],
};

/// One CPU under `ladder`.
pub(crate) const LADDER: AgreementLimits = AgreementLimits {
    levels: AgreementCount { of: 24, kernel: 23, margin: 1 },
    changes: AgreementCount { of: 24, kernel: 21, margin: 1 },
    order: AgreementCount { of: 24, kernel: 21, margin: 4 },
    idle: AgreementCount { of: 48, kernel: 42, margin: 2 },
    idle_points: 15.0,
    ..MENU
};

/// Four CPUs, under either.
pub(crate) const FOUR: AgreementLimits = AgreementLimits {
    levels: AgreementCount { of: 24, kernel: 14, margin: 1 },
    changes: AgreementCount { of: 24, kernel: 21, margin: 1 },
    order: AgreementCount { of: 24, kernel: 12, margin: 1 },
    idle: AgreementCount { of: 48, kernel: 28, margin: 1 },
    levels_points: 25.0,
    idle_points: 30.0,
    unbounded: &[("schedutil", "build")],
};

/// What one cell does that no cell may.
fn faults(cell: &AgreementCell, limits: &AgreementLimits) -> Vec<String> {
    let mut faults = Vec::new();
    if cell.fixed() {
        let differs = CRITERIA.iter().filter(|c| c.speeds && !(c.agrees)(cell));
        faults.extend(differs.map(|c| format!("{} differ, and the governor's level is fixed", c.name)));
    }
    // What is no number is within nothing.
    let within = |points: f64, limit: f64| points <= limit;
    let bounded = !limits.unbounded.contains(&(&cell.governor, &cell.load));
    if bounded && !within(cell.levels_points, limits.levels_points) {
        faults.push(format!("levels {:.1} points apart, limit {}", cell.levels_points, limits.levels_points));
    }
    if changes_far(cell) {
        faults.push(format!("{} changes and {}", cell.changes.0, cell.changes.1));
    }
    if !within(cell.idle_points, limits.idle_points) {
        faults
            .push(format!("idle states {:.1} points apart, limit {}", cell.idle_points, limits.idle_points));
    }
    faults.iter().map(|f| format!("{}: {f}", cell.name)).collect()
}

/// The lines for people: every cell, then every criterion.
pub(crate) fn figures(cells: &[AgreementCell]) -> Vec<String> {
    let cell = |c: &AgreementCell| {
        format!(
            "{}: levels within {:.1} points, changes {} and {}, idle within {:.1} points",
            c.name, c.levels_points, c.changes.0, c.changes.1, c.idle_points
        )
    };
    cells.iter().map(cell).chain(CRITERIA.iter().map(|c| c.figure(cells))).collect()
}

/// Judges a table.
///
/// # Errors
/// Every cell that is out of a limit, and every criterion that too few cells meet, a line each.
pub(crate) fn judge(cells: &[AgreementCell], limits: &AgreementLimits) -> Result<JudgeTold, String> {
    let mut told = JudgeTold { figures: figures(cells), ..JudgeTold::default() };
    let mut wrong = Vec::new();
    for cell in cells {
        match faults(cell, limits) {
            none if none.is_empty() => told.checks.push(format!("{} is within the limits", cell.name)),
            some => wrong.extend(some),
        }
    }
    for criterion in &CRITERIA {
        let (deciding, _) = criterion.split(cells);
        let count = (criterion.count)(limits);
        let (least, of, agree) = (count.least(), count.of, criterion.agreeing(&deciding));
        if deciding.len() != of {
            wrong.push(format!(
                "{}: {} cells decide something, the limits are for {of}",
                criterion.name,
                deciding.len()
            ));
        } else if agree < least {
            wrong.push(format!("{}, at least {least} expected", criterion.figure(cells)));
        } else {
            told.checks.push(format!("{}: at least {least} of {of} cells agree", criterion.name));
        }
    }
    if wrong.is_empty() { Ok(told) } else { Err(format!("see table.md\n  {}", wrong.join("\n  "))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::{GOVERNORS, LOADS};
    use std::collections::BTreeMap;
    use std::path::Path;
    use wattwise_policy::{Cadence, Settings, speed};
    use wattwise_sim::platform;

    /// What is made up in a cell.
    type Change = fn(&mut AgreementCell);

    const DECIDING: [&str; 3] = ["ondemand", "conservative", "schedutil"];

    /// A table in which every cell agrees.
    fn table(domains: usize) -> Vec<AgreementCell> {
        let cell = |governor: &str, load: &str| AgreementCell {
            name: format!("menu-{governor}-{load}"),
            governor: governor.to_owned(),
            load: load.to_owned(),
            levels_points: 0.0,
            changes: (0, 0),
            same_order: domains,
            domains,
            idle_points: 0.0,
        };
        let governors = GOVERNORS.split_whitespace();
        governors
            .flat_map(|g| LOADS.split_whitespace().map(move |l| (g, l)))
            .map(|(g, l)| cell(g, l))
            .collect()
    }

    /// The same with so many of the cells that decide something changed.
    fn with(domains: usize, changed: usize, change: Change) -> Vec<AgreementCell> {
        let mut cells = table(domains);
        let deciding = cells.iter_mut().filter(|c| DECIDING.contains(&c.governor.as_str()));
        deciding.take(changed).for_each(change);
        cells
    }

    fn fails(cells: &[AgreementCell], limits: &AgreementLimits, part: &str) {
        let why = judge(cells, limits).expect_err(part);
        assert!(why.contains(part), "{part}: {why}");
    }

    #[test]
    fn agreement_passes_and_every_cell_and_criterion_is_a_check() {
        let told = judge(&table(1), &MENU).expect("all agree");
        assert_eq!(told.checks.len(), 48 + 4);
        assert_eq!(told.checks[0], "menu-ondemand-steady,share=10 is within the limits");
        assert_eq!(told.checks[48], "levels: at least 23 of 24 cells agree");
        assert_eq!(
            told.figures[48..],
            [
                "levels: 24 of 24 cells that decide something within 3 points at every level, 24 by construction",
                "changes: 24 of 24 cells that decide something within a tenth of the changes, or two a CPU, 24 by construction",
                "order: 24 of 24 cells that decide something with the same levels in the same order on every CPU, 24 by construction",
                "idle: 48 of 48 cells that decide something within 3 points in every idle state",
            ]
        );
    }

    /// Each criterion of each scenario: as many cells as the margin lets differ, and one more.
    #[test]
    fn a_count_below_the_kernels_own_less_the_margin_fails() {
        let differ: [(&str, Change); 4] = [
            ("levels", |c| c.levels_points = 3.1),
            ("changes", |c| c.changes = (40, 50)),
            ("order", |c| c.same_order -= 1),
            ("idle", |c| c.idle_points = 3.1),
        ];
        for (limits, domains, least) in
            [(&MENU, 1, [23, 23, 20, 44]), (&LADDER, 1, [22, 20, 17, 40]), (&FOUR, 4, [13, 20, 11, 27])]
        {
            for (criterion, ((name, change), least)) in CRITERIA.iter().zip(differ.into_iter().zip(least)) {
                assert_eq!(criterion.name, name);
                let of = if name == "idle" { 48 } else { 24 };
                let told = judge(&with(domains, of - least, change), limits).expect(name);
                assert!(
                    told.checks.contains(&format!("{name}: at least {least} of {of} cells agree")),
                    "{told:?}"
                );
                let below = with(domains, of - least + 1, change);
                fails(&below, limits, &format!("{name}: {} of {of} cells that decide something", least - 1));
            }
        }
    }

    #[test]
    fn one_cell_that_is_out_fails_whatever_the_others_do() {
        let out: [(&str, Change); 6] = [
            ("levels 15.1 points apart", |c| c.levels_points = 15.1),
            ("levels NaN points apart", |c| c.levels_points = f64::NAN),
            ("52 changes and 19", |c| c.changes = (52, 19)),
            ("0 changes and 5", |c| c.changes = (0, 5)),
            ("idle states 50.1 points apart", |c| c.idle_points = 50.1),
            ("idle states NaN points apart", |c| c.idle_points = f64::NAN),
        ];
        for (part, change) in out {
            fails(&with(1, 1, change), &MENU, part);
        }
        let at_the_limit: [Change; 3] =
            [|c| c.levels_points = 15.0, |c| c.changes = (52, 26), |c| c.idle_points = 50.0];
        for change in at_the_limit {
            judge(&with(1, 1, change), &MENU).expect("one cell may be as far off as that");
        }
    }

    #[test]
    fn a_build_under_schedutil_has_no_limit_at_the_levels_of_four_cpus_alone() {
        let far = |governor: &str, load: &str, domains| {
            let mut cells = table(domains);
            let cell =
                cells.iter_mut().find(|c| c.governor == governor && c.load == load).expect("in the table");
            cell.levels_points = 98.8;
            cells
        };
        judge(&far("schedutil", "build", 4), &FOUR).expect("not bounded");
        fails(&far("schedutil", "build", 1), &LADDER, "levels 98.8 points apart");
        fails(&far("ondemand", "build", 4), &FOUR, "levels 98.8 points apart, limit 25");
    }

    #[test]
    fn a_fixed_governors_speeds_must_agree_and_its_idle_states_count() {
        let mut cells = table(1);
        let cell = cells.iter_mut().find(|c| c.governor == "userspace").expect("in the table");
        cell.levels_points = 3.1;
        fails(&cells, &MENU, "levels differ, and the governor's level is fixed");
        let mut cells = table(1);
        cells.iter_mut().filter(|c| c.governor == "powersave").for_each(|c| c.idle_points = 5.0);
        fails(&cells, &MENU, "idle: 40 of 48 cells that decide something");
    }

    #[test]
    fn a_table_that_lacks_a_cell_fails() {
        fails(&table(1)[1..], &MENU, "levels: 23 cells decide something, the limits are for 24");
    }

    /// The cells of a page that a boot made.
    fn published(root: &Path, scenario: &str, domains: usize) -> Vec<AgreementCell> {
        let page =
            crate::files::read(&root.join(format!("docs/notes/fidelity-{scenario}.md"))).expect("a page");
        let cell = |line: &str| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [governor, idle, load, levels, changes, order, _, worst] = cells[..] else { return None };
            let (a, b) = changes.split_once(", ")?;
            Some(AgreementCell {
                // As lab/scenarios/fidelity.sh names its runs.
                name: format!("{idle}-{governor}-{}", load.replace(',', "_").replace('=', "-")),
                governor: governor.to_owned(),
                load: load.to_owned(),
                levels_points: levels.split_once(", ")?.0.parse().ok()?,
                changes: (a.parse().ok()?, b.parse().ok()?),
                same_order: match order {
                    "yes" => domains,
                    "no" => 0,
                    some => some.split_once(" of ")?.0.parse().ok()?,
                },
                domains,
                idle_points: worst.parse().ok()?,
            })
        };
        page.lines().filter_map(cell).collect()
    }

    /// They pass, with the numbers that docs/notes/lab.md tells, and their checks are those of the golden files.
    #[test]
    fn the_published_boots_pass() {
        let root = crate::repository().expect("a repository");
        for (scenario, limits, domains, agree) in [
            ("icount", &MENU, 1, [24, 24, 21, 46]),
            ("ladder", &LADDER, 1, [24, 24, 24, 48]),
            ("4cpu", &FOUR, 4, [17, 23, 15, 39]),
            ("4cpu-ladder", &FOUR, 4, [19, 23, 13, 36]),
        ] {
            let cells = published(root, scenario, domains);
            let told = judge(&cells, limits).expect(scenario);
            let golden =
                crate::files::read(&root.join(format!("lab/golden/{scenario}.json"))).expect("a golden file");
            let golden: BTreeMap<String, u64> = serde_json::from_str(&golden).expect("checks");
            assert_eq!(crate::count(&[], &told.checks), golden, "{scenario}");
            for (criterion, agree) in CRITERIA.iter().zip(agree) {
                let (deciding, constructed) = criterion.split(&cells);
                assert_eq!(criterion.agreeing(&deciding), agree, "{scenario}: {}", criterion.name);
                assert_eq!(
                    criterion.agreeing(&constructed),
                    constructed.len(),
                    "{scenario}: {}",
                    criterion.name
                );
            }
        }
    }

    #[test]
    fn fixed_governors_are_those_that_decide_once() {
        let platform =
            platform(&crate::machine::lab(crate::repository().expect("a repository")).expect("described"));
        for name in GOVERNORS.split_whitespace() {
            let item = speed::find(name).expect(name);
            let policy = (item.build)(&platform, &Settings::defaults(item.params));
            assert_eq!(FIXED.contains(&name), policy.cadence() == Cadence::Once, "{name}");
            assert_ne!(FIXED.contains(&name), DECIDING.contains(&name), "{name}");
        }
    }
}
