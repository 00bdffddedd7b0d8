//! Fits how rough the model is beside what it draws, to the bundled tables; and again without each machine in turn:
//!
//! ```text
//! cargo run --release -p wattwise-study --example roughness [-- CSV]
//! ```
//!
//! With CSV, a line a comparison is written there: table, machine, kind, measured, predicted, both ends of the draws, spread.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use wattwise_study::hardware::compare::Comparison;
use wattwise_study::hardware::fit::{fit, held};
use wattwise_study::hardware::rough::{Kind, Roughness};
use wattwise_study::hardware::table::Table;
use wattwise_study::hardware::{Effort, Scored, bundled, score};

/// A machine as tables have it: the name in its file.
fn machine(table: &Table, c: &Comparison) -> String {
    let text = table.rows[c.row].setting.as_ref().map_or("", |s| &*s.machine);
    let name = text.lines().find_map(|l| l.strip_prefix("name = "));
    name.unwrap_or(text).trim_matches('"').to_owned()
}

/// A table's comparisons of a kind, by machine.
type ByMachine<'a> = BTreeMap<String, Vec<&'a Comparison>>;

fn by_machine<'a>(table: &'a Table, all: &'a [Comparison], kind: Kind) -> ByMachine<'a> {
    let mut out = ByMachine::new();
    for c in all.iter().filter(|c| Kind::of(&table.quantities[c.quantity]) == kind) {
        out.entry(machine(table, c)).or_default().push(c);
    }
    out
}

/// The comparisons of a kind without a machine's, by table.
fn without<'a>(tables: &[ByMachine<'a>], left_out: Option<&str>) -> Vec<Vec<&'a Comparison>> {
    let of = |t: &ByMachine<'a>| {
        let kept = t.iter().filter(|(m, _)| Some(m.as_str()) != left_out);
        kept.flat_map(|(_, all)| all.iter().copied()).collect::<Vec<_>>()
    };
    tables.iter().map(of).filter(|t| !t.is_empty()).collect()
}

fn mean(shares: &[f64]) -> f64 {
    100.0 * shares.iter().sum::<f64>() / shares.len().max(1) as f64
}

fn told(r: Roughness) -> String {
    format!("same {:.3}, floor {:.3}, effect {:.2}", r.same, r.floor, r.effect)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tables = bundled::tables()?;
    let Scored { compared, .. } = score(&tables, Effort::default(), &|_| {});
    if let Some(path) = std::env::args().nth(1) {
        let mut csv = String::from("table,machine,kind,measured,predicted,low,high,spread\n");
        for (table, found) in tables.iter().zip(&compared) {
            for c in &found.comparisons {
                let kind = Kind::of(&table.quantities[c.quantity]);
                let (low, high) = c.drawn;
                let at = machine(table, c);
                writeln!(
                    csv,
                    "{},{at},{kind:?},{},{},{low},{high},{}",
                    table.name, c.measured, c.predicted, c.spread
                )?;
            }
        }
        std::fs::write(path, csv)?;
    }
    for kind in Kind::ALL {
        let all: Vec<ByMachine<'_>> =
            tables.iter().zip(&compared).map(|(t, c)| by_machine(t, &c.comparisons, kind)).collect();
        let usual = fit(&without(&all, None));
        println!("{kind:?}: {}", told(usual));
        let machines: BTreeSet<&str> = all.iter().flat_map(|t| t.keys().map(String::as_str)).collect();
        let mut inside = Vec::new();
        for out in machines {
            let other = fit(&without(&all, Some(out)));
            let shares: Vec<f64> = all.iter().filter_map(|t| t.get(out)).map(|c| held(other, c)).collect();
            let n: usize = all.iter().filter_map(|t| t.get(out)).map(Vec::len).sum();
            println!("  without {out}: {}; holds {:.0} % of its {n}", told(other), mean(&shares));
            inside.extend(shares);
        }
        println!("  each machine by the others: {:.1} %, mean over tables", mean(&inside));
    }
    Ok(())
}
