//! `machines compare`: two models side by side.

use super::{FigureLine, columns, facts, machine};
use crate::exit::{Outcome, print, print_json_as};
use serde::Serialize;
use wattwise_figure::one_line;
use wattwise_model::machine::MachineModel;

/// Version of what `--json` prints.
pub(crate) const SCHEMA: &str = "wattwise.machine-compare/1";

#[derive(clap::Args)]
pub(crate) struct Args {
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
    Model { name: m.name.clone(), summary: m.summary.clone(), rest_w, full_w }
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

pub(crate) fn run(args: &Args, json: bool) -> Outcome {
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
        ["figure", &a.name, "19 of 20 within", "standing", &b.name, "19 of 20 within", "standing", ""]
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
    print(&format!("{}\n{}\n\n{}", line(&a), line(&b), columns(&rows)))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_replay::library;

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
