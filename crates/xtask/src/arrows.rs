//! Holds every crate's manifest against the map: which of our crates it may use (ARCHITECTURE.md).
//!
//! Cargo refuses an import of a crate that the manifest does not name; this refuses the manifest. The two wings,
//! model and machine, meet in `advice`'s users alone: `hw` never sees `sim`, nor `sim` `hw`.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// A crate, and what it may use beside what that uses: itself on the left, from the ground up.
const FLOORS: &[(&str, &[&str])] = &[
    // Ground.
    ("policy", &[]),
    ("figure", &[]),
    ("page", &["figure"]),
    ("packed", &[]),
    ("child", &[]),
    ("output", &[]),
    ("threads", &[]),
    ("locks", &[]),
    ("locks-preload", &["locks"]),
    ("lockbench", &["figure"]),
    // Model wing.
    ("model", &["figure"]),
    ("sim", &["model", "policy", "figure"]),
    ("trace", &["model", "figure", "packed", "child", "output", "threads"]),
    ("replay", &["sim", "trace", "model", "policy", "lockbench", "figure"]),
    ("responses", &["sim", "model", "figure"]),
    ("advice", &["responses", "replay"]),
    ("tune", &["advice", "output"]),
    ("study", &["advice", "page"]),
    // Machine wing.
    ("hw", &["figure", "packed", "output"]),
    ("emulator", &["hw", "model"]),
    ("meter", &["hw", "figure"]),
    ("control", &["meter", "hw", "policy", "figure", "child", "threads"]),
    ("proof", &["hw", "figure", "output"]),
    ("daemon", &["control", "proof", "emulator", "meter", "hw", "policy", "figure"]),
    ("live", &["control", "proof", "meter", "hw", "model", "lockbench", "locks", "figure"]),
    // Bridges and faces.
    ("report", &["page", "advice", "live"]),
    ("calibrate", &["live", "emulator", "page"]),
    ("cli", &["study", "tune", "report", "calibrate", "live", "emulator", "daemon"]),
    ("python", &["study", "tune"]),
    ("lab", &["study", "trace", "sim", "model", "policy", "hw"]),
    ("xtask", &["policy", "model"]),
];

/// Every crate that `name` may use: its own list and theirs.
fn allowed(name: &str) -> BTreeSet<&'static str> {
    let mut all = BTreeSet::new();
    let mut open: Vec<&str> = FLOORS.iter().find(|(n, _)| *n == name).map_or(vec![], |(_, l)| l.to_vec());
    while let Some(next) = open.pop() {
        if let Some((n, below)) = FLOORS.iter().find(|(n, _)| *n == next)
            && all.insert(*n)
        {
            open.extend(*below);
        }
    }
    all
}

/// The room of a package: `wattwise` is the command line, `wattwise-hw` is `hw`.
fn room(package: &str) -> &str {
    match package {
        "wattwise" => "cli",
        other => other.strip_prefix("wattwise-").unwrap_or(other),
    }
}

/// A sentence for each arrow that the map has not. Dev-dependencies are free: tests may look from anywhere.
fn wrong(uses: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut out = Vec::new();
    for (name, used) in uses {
        if !FLOORS.iter().any(|(n, _)| n == name) {
            out.push(format!("{name}: a crate that the map in crates/xtask/src/arrows.rs does not have"));
            continue;
        }
        let may = allowed(name);
        for u in used.iter().filter(|u| !may.contains(u.as_str())) {
            out.push(format!(
                "{name} uses {u}; it may use {}",
                may.iter().copied().collect::<Vec<_>>().join(", ")
            ));
        }
    }
    out
}

/// What each crate of the workspace uses of the others, as Cargo says.
fn workspace() -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    let out = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .map_err(|e| format!("cargo metadata: {e}"))?;
    let all: Value = serde_json::from_slice(&out.stdout).map_err(|e| format!("cargo metadata: {e}"))?;
    let list = |v: &Value, key: &str| v[key].as_array().cloned().unwrap_or_default();
    let mut uses = BTreeMap::new();
    for package in list(&all, "packages") {
        let ours = list(&package, "dependencies")
            .into_iter()
            .filter(|d| d["kind"].is_null() && !d["path"].is_null());
        let names = ours.filter_map(|d| Some(room(d["name"].as_str()?).to_owned())).collect();
        uses.insert(room(package["name"].as_str().unwrap_or_default()).to_owned(), names);
    }
    if uses.is_empty() { Err("cargo metadata names no package".into()) } else { Ok(uses) }
}

pub(crate) fn run() -> Result<(), String> {
    let uses = workspace()?;
    let wrong = wrong(&uses);
    if wrong.is_empty() {
        println!("arrows: {} crates, none uses what is above it", uses.len());
        return Ok(());
    }
    Err(format!("arrows:\n{}", wrong.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(of: &[(&str, &[&str])]) -> BTreeMap<String, BTreeSet<String>> {
        of.iter().map(|(n, u)| ((*n).to_owned(), u.iter().map(|u| (*u).to_owned()).collect())).collect()
    }

    #[test]
    fn the_map_has_no_circle_and_the_wings_do_not_meet() {
        for (name, _) in FLOORS {
            assert!(!allowed(name).contains(name), "{name} stands above itself");
        }
        for (below, above) in
            [("hw", "sim"), ("sim", "hw"), ("control", "sim"), ("advice", "hw"), ("policy", "figure")]
        {
            assert!(!allowed(below).contains(above), "{below} may use {above}");
        }
    }

    #[test]
    fn an_arrow_that_runs_up_or_across_is_told() {
        assert_eq!(wrong(&uses(&[("sim", &["model", "policy"])])), Vec::<String>::new());
        for (name, used) in [("hw", "sim"), ("sim", "hw"), ("meter", "control"), ("model", "policy")] {
            let told = wrong(&uses(&[(name, &[used])]));
            assert!(told.len() == 1 && told[0].starts_with(&format!("{name} uses {used};")), "{told:?}");
        }
        assert!(wrong(&uses(&[("newcomer", &[])]))[0].contains("does not have"));
    }
}
