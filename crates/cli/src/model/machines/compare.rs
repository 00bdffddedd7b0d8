//! `machines compare`: two models side by side: what is in force on them, and their figures.

use super::{FigureLine, columns, facts, machine};
use crate::exit::{Outcome, print, print_json_as};
use serde::Serialize;
use wattwise_figure::one_line;
use wattwise_figure::setting::Setting;
use wattwise_model::machine::MachineModel;
use wattwise_policy::System;
use wattwise_replay::apply::{self, ApplyTarget};
use wattwise_replay::spec::PolicySpec;

/// Version of what `--json` prints.
pub(crate) const SCHEMA: &str = "wattwise.machine-compare/1";

#[derive(clap::Args)]
pub(crate) struct CompareMachinesArgs {
    /// A model's name, or its file
    a: String,
    /// Another
    b: String,
}

/// Two models.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Compared {
    /// The first model.
    a: Model,
    /// The second.
    b: Model,
    /// Every figure that either has, those of the first in its order.
    figures: Vec<Both>,
}

/// A model in short.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Model {
    /// Its name.
    name: String,
    /// In a sentence.
    summary: String,
    /// Watts with every core in its deepest state, platform included.
    rest_w: f64,
    /// Watts with every CPU busy, platform included.
    full_w: f64,
    /// What is in force there, or what its system does unless told otherwise.
    in_force: InForce,
}

/// What decides a machine's speed now; null where it has no such thing.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct InForce {
    /// The driver of speeds.
    driver: String,
    /// The governor: of a driver that chooses speeds itself the kernel's name of that.
    governor: Option<String>,
    /// The rule for the speed, as `--policy` takes it.
    rule: Option<String>,
    /// The energy-performance preference.
    epp: Option<String>,
    /// The user's limits, as parts of a policy (`max=60%`, `noboost`).
    limits: Vec<String>,
    /// The governors of its kernel; empty where nobody knows, or where its driver names only its own.
    governors: Vec<String>,
    /// The governor of C-states.
    idle_governor: String,
}

impl InForce {
    fn of(m: &MachineModel) -> InForce {
        let policy = PolicySpec::parse(&m.default_policy).ok();
        let settings = policy.as_ref().and_then(|p| {
            let target = ApplyTarget::of(m, System::find(&m.system)?);
            apply::commands(p, &target).ok()?.settings().map(<[Setting]>::to_vec)
        });
        let of = |find: &dyn Fn(&Setting) -> Option<String>| settings.iter().flatten().find_map(find);
        let bare = policy.as_ref().map(PolicySpec::without_limits);
        let limits = policy.iter().zip(&bare).flat_map(|(whole, bare)| {
            let limits = whole.text.strip_prefix(bare.text.as_str()).unwrap_or_default();
            limits.split('+').filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        });
        InForce {
            driver: m.driver.clone(),
            governor: of(&|s| match s {
                Setting::Governor(name) => Some(name.clone()),
                Setting::Freq(_) => Some("userspace".to_owned()),
                _ => None,
            }),
            epp: of(&|s| if let Setting::Epp(epp) = s { Some(epp.clone()) } else { None }),
            limits: limits.collect(),
            rule: bare.map(|bare| bare.text),
            governors: m.governors.clone(),
            idle_governor: m.default_idle.clone(),
        }
    }

    /// Each as a name and its value, as people read them.
    fn rows(&self) -> [(&'static str, String); 7] {
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let list = |all: &[String]| if all.is_empty() { "-".to_owned() } else { all.join(" ") };
        [
            ("driver", self.driver.clone()),
            ("governor", or_dash(&self.governor)),
            ("policy", or_dash(&self.rule)),
            ("EPP", or_dash(&self.epp)),
            ("limits", list(&self.limits)),
            ("governors", list(&self.governors)),
            ("idle governor", self.idle_governor.clone()),
        ]
    }
}

/// A figure in both.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Both {
    /// Its path in the files; a kind of core has its name in each, or its place where they differ.
    what: String,
    /// In the first, where it has it.
    a: Option<FigureLine>,
    /// In the second.
    b: Option<FigureLine>,
    /// Whether the two intervals have something in common.
    overlap: bool,
}

fn model(m: &MachineModel) -> Model {
    let (rest_w, full_w) = m.rest_and_full_w();
    Model { name: m.name.clone(), summary: m.summary.clone(), rest_w, full_w, in_force: InForce::of(m) }
}

/// The drawn figures of a model, the kinds of core by their place, so that `core` of one stands beside `P` of the other.
fn figures(m: &MachineModel) -> Vec<(String, FigureLine)> {
    let inputs = m.inputs();
    let lines = inputs.iter().map(FigureLine::of).filter(|f| f.nominal.is_some());
    let by_place = |what: &str| {
        m.kinds.iter().enumerate().find_map(|(k, kind)| {
            let rest = what.strip_prefix("kind.")?.strip_prefix(kind.name.as_str())?.strip_prefix('.')?;
            Some(format!("kind {}.{rest}", k + 1))
        })
    };
    lines.map(|f| (by_place(&f.what).unwrap_or_else(|| f.what.clone()), f)).collect()
}

fn compared(a: &MachineModel, b: &MachineModel) -> Compared {
    let (mut left, mut right) = (figures(a), figures(b));
    let mut both = Vec::new();
    for (what, f) in left.drain(..) {
        let other = right.iter().position(|(w, _)| *w == what).map(|at| right.remove(at).1);
        both.push(pair(what, Some(f), other));
    }
    both.extend(right.into_iter().map(|(what, f)| pair(what, None, Some(f))));
    Compared { a: model(a), b: model(b), figures: both }
}

fn pair(what: String, a: Option<FigureLine>, b: Option<FigureLine>) -> Both {
    let ends = |f: &Option<FigureLine>| f.as_ref().and_then(|f| f.low.zip(f.high));
    let overlap = ends(&a).zip(ends(&b)).is_some_and(|(a, b)| a.0 <= b.1 && b.0 <= a.1);
    Both { what, a, b, overlap }
}

pub(crate) fn run(args: &CompareMachinesArgs, json: bool) -> Outcome {
    let (a, b) = (machine(&args.a, "compare")?, machine(&args.b, "compare")?);
    let compared = compared(&a, &b);
    if json {
        print_json_as(SCHEMA, &compared)?;
        return Ok(0);
    }
    let cells = |f: &Option<FigureLine>| match f {
        Some(f) => [f.value(), f.interval(), f.standing.clone()],
        None => ["-".to_owned(), String::new(), String::new()],
    };
    let mut rows = vec![
        ["figure", &a.name, "95 % range", "basis", &b.name, "95 % range", "basis", ""]
            .map(str::to_owned)
            .to_vec(),
    ];
    for f in &compared.figures {
        let apart = if f.a.is_some() && f.b.is_some() && !f.overlap { "apart" } else { "" };
        let mut row = vec![f.what.clone()];
        row.extend(cells(&f.a));
        row.extend(cells(&f.b));
        row.push(apart.to_owned());
        rows.push(row);
    }
    let line = |m: &MachineModel| one_line(&format!("{}: {}; {}", m.name, m.summary, facts(m)));
    let mut in_force = vec![["in force", &a.name, &b.name, ""].map(str::to_owned).to_vec()];
    for ((what, left), (_, right)) in compared.a.in_force.rows().into_iter().zip(compared.b.in_force.rows()) {
        let apart = if left == right { "" } else { "differs" };
        in_force.push(vec![what.to_owned(), left, right, apart.to_owned()]);
    }
    print(&format!("{}\n{}\n\n{}\n{}", line(&a), line(&b), columns(&in_force), columns(&rows)))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_replay::library;

    #[test]
    fn what_is_in_force_stands_side_by_side() {
        let mut laptop = library::machine("alderlake-p-laptop").expect("bundled");
        laptop.default_policy = "hwp:epp=power+max=60%+noboost+cmax=C6+latency=300us".into();
        let now = InForce::of(&laptop);
        assert_eq!((now.driver.as_str(), now.governor.as_deref()), ("intel_pstate-hwp", Some("powersave")));
        assert_eq!((now.rule.as_deref(), now.epp.as_deref()), (Some("hwp:epp=power"), Some("power")));
        assert_eq!(now.limits, ["max=60%", "noboost", "cmax=C6", "latency=300us"]);
        let guest = InForce::of(&library::machine("recording-vm").expect("bundled"));
        assert_eq!((guest.driver.as_str(), guest.governor, guest.limits.len()), ("none", None, 0));
    }

    #[test]
    fn kinds_stand_side_by_side_and_nothing_is_lost() {
        let of = |name: &str| library::machine(name).expect("bundled");
        let (a, b) = (of("xeon-4210"), of("alderlake-p-laptop"));
        let both = compared(&a, &b);
        let uncore = both.figures.iter().find(|f| f.what == "package.uncore_w").expect("both have it");
        assert!(uncore.a.is_some() && uncore.b.is_some() && !uncore.overlap, "30 W and 2.5 W");
        let volts = both.figures.iter().find(|f| f.what == "kind 1.speeds.volts").expect("both have it");
        assert!(volts.a.is_some() && volts.b.is_some());
        let left = both.figures.iter().filter(|f| f.a.is_some()).count();
        let right = both.figures.iter().filter(|f| f.b.is_some()).count();
        assert_eq!((left, right), (a.figures().len(), b.figures().len()));
    }
}
