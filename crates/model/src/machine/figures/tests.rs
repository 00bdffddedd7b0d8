use super::*;
use crate::machine::{builtin, file};

fn bundled(name: &str) -> MachineModel {
    file::parse(builtin::text(name).unwrap(), name).unwrap()
}

fn find<'a>(m: &'a MachineModel, what: &str) -> &'a Uncertain {
    m.figures().iter().find(|f| f.what == what).unwrap_or_else(|| panic!("{what} is not drawn"))
}

#[test]
fn figures_have_the_files_paths_values_and_units() {
    let m = bundled("alderlake-p-laptop");
    let f = find(&m, "kind.P.speeds.capacitance_nf");
    assert_eq!((f.nominal, f.unit, f.spread), (2.1, "nF", Spread::Guess));
    assert_eq!(m.provenance[f.origin].what, "kind.P.speeds");
    // 19 of 20 of a guess: e^(1.96 x 0.25) up and down.
    assert!((f.low - 2.1 / 1.632_316).abs() < 1e-6 && (f.high - 2.1 * 1.632_316).abs() < 1e-5, "{f:?}");
    let f = find(&m, "kind.P.idle.latency_us");
    assert_eq!((f.nominal, f.low, f.high), (2.0, 0.6, 2.0));
    assert_eq!(find(&m, "kind.P.idle.watts").spread, Spread::Guess);
    assert_eq!(find(&m, "kind.P.speeds.volts").spread, Spread::Within { low: 0.9, high: 1.1 });
    assert_eq!(find(&m, "package.idle.watts").nominal, 1.2);
    assert_eq!(find(&m, "thermal.critical_c").spread, Spread::Within { low: 0.97, high: 1.03 });
    // What threads take from each other: 0.37, more or less, of one thread's work.
    let f = find(&m, "kind.P.smt_throughput");
    assert!(f.nominal == 0.63 && (f.low - (1.0 - 0.37 * 1.632_316)).abs() < 1e-6, "{f:?}");
}

/// Facts and references stay as they are, and what is counted elsewhere has no figure.
#[test]
fn facts_are_not_drawn() {
    for name in builtin::names() {
        let m = bundled(name);
        let whats: Vec<&str> = m.figures().iter().map(|f| f.what.as_str()).collect();
        for fact in ["mhz", "boost", "topology", "target_us", "hz", "battery_wh", "cores", "name"] {
            assert!(!whats.iter().any(|w| w.split('.').any(|part| part == fact)), "{name}: {fact}");
        }
        assert!(m.figures().iter().all(|f| f.nominal != 0.0 && f.low < f.high), "{name}");
        let unique: std::collections::BTreeSet<&str> = whats.iter().copied().collect();
        assert_eq!(unique.len(), whats.len(), "{name}");
    }
    assert!(!bundled("alderlake-p-laptop").figures().iter().any(|f| f.what == "kind.P.ipc"));
    assert!(bundled("alderlake-p-laptop").figures().iter().any(|f| f.what == "kind.E.ipc"));
    let made = bundled("bursts-v1");
    assert!(!made.figures().iter().any(|f| f.what.ends_with("busy_w") || f.what == "platform.watts"));
}

#[test]
fn a_value_with_a_source_of_its_own_has_a_figure_of_its_own() {
    let m = bundled("core-i5-2gen");
    let f = find(&m, "kind.core.speeds.2900.busy_w");
    assert_eq!((f.nominal, f.spread), (38.25, Spread::Within { low: 0.9, high: 1.1 }));
    assert_eq!(find(&m, "kind.core.speeds.busy_w").nominal, 37.0);
    assert_eq!(find(&m, "kind.core.idle.C6.watts").spread, Spread::Guess);
    assert_eq!(find(&m, "kind.core.idle.watts").spread, Spread::Within { low: 0.95, high: 1.05 });
    // Its exits are in two figures: those that the file gives, and those that the table's worst case stands for.
    let m = bundled("i7-4510u");
    assert_eq!(find(&m, "kind.core.idle.exit_us").nominal, 166.0);
    assert_eq!(find(&m, "kind.core.idle.latency_us").nominal, 2.0);
}

#[test]
fn every_input_is_listed_with_its_interval() {
    let m = bundled("core-i5-2gen");
    let inputs = m.inputs();
    let of = |what: &str| inputs.iter().find(|i| i.what == what).unwrap();
    assert_eq!(of("topology").value, None);
    assert_eq!(of("kind.core.idle.watts").value.map(|v| (v.nominal, v.unit)), Some((31.5, "W")));
    assert_eq!(of("kind.core.speeds.2900.busy_w").source, of("kind.core.speeds.2900").source);
    assert_eq!(of("platform.migration_us").value.map(|v| v.nominal), Some(5.0));
    for f in m.figures() {
        assert_eq!(inputs.iter().filter(|i| i.what == f.what).count(), 1, "{}", f.what);
    }
    for line in &m.provenance {
        assert_eq!(inputs.iter().filter(|i| i.what == line.what).count(), 1, "{}", line.what);
    }
}

/// A machine whose platform and C-state watts say what `sources` or `range` adds.
fn with(tables: &str) -> Result<MachineModel, String> {
    let text = format!("base = 'alderlake-p-laptop'\nname = 'mine'\n{tables}");
    file::parse(&text, "m.toml").map_err(|e| e.to_string())
}

#[test]
fn a_file_may_say_how_far_a_figure_is_off() {
    let m =
        with("[platform]\nwatts = 4.0\nsource = 'a meter'\nconfidence = 'measured'\nrange = '+-2%'").unwrap();
    let f = find(&m, "platform.watts");
    assert!((f.low - 3.92).abs() < 1e-12 && (f.high - 4.08).abs() < 1e-12, "{f:?}");
    let m = with("[package]\nsources.uncore_w = { source = 'a fit', confidence = 'fitted', range = [2, 4] }")
        .unwrap();
    let f = find(&m, "package.uncore_w");
    assert!((f.low - 2.0).abs() < 1e-12 && (f.high - 4.0).abs() < 1e-12, "{f:?}");
    let m = with("[package]\nsources.uncore_w = { source = 'so', confidence = 'datasheet', range = '±0 %' }")
        .unwrap();
    assert!(!m.figures().iter().any(|f| f.what == "package.uncore_w"));
    // Another source for the same table does not inherit the range: bursts-v1's own is "+-0%".
    let text = "base = 'bursts-v1'\nname = 'mine'\n[platform]\nwatts = 9\nsource = 's'\nconfidence = 'guess'";
    assert_eq!(find(&file::parse(text, "m.toml").unwrap(), "platform.watts").spread, Spread::Guess);
}

#[test]
fn ranges_that_are_none_are_refused_in_one_line() {
    let source = |key: &str, range: &str| {
        format!("sources.{key} = {{ source = 's', confidence = 'measured', range = {range} }}")
    };
    for (tables, part) in [
        (format!("[package]\n{}", source("uncore_w", "'10%'")), "range = \"10%\": expected"),
        (format!("[package]\n{}", source("uncore_w", "'+-100%'")), "+-90%"),
        (format!("[package]\n{}", source("uncore_w", "'+-nan%'")), "expected"),
        (format!("[package]\n{}", source("uncore_w", "\"a\\nb\"")), "expected"),
        (format!("[package]\n{}", source("uncore_w", "[3, 2]")), "the lower first"),
        (format!("[package]\n{}", source("uncore_w", "[3, inf]")), "the lower first"),
        (format!("[package]\n{}", source("uncore_w", "3")), "expected \"+-10%\" or [low, high]"),
        (
            format!("[package]\n{}", source("uncore_w", "[3, 4]")),
            "package.uncore_w: range = [3, 4]: expected the ends around 2.5",
        ),
        (format!("[package]\n{}", source("uncore_w", "[-3, 4]")), "around 2.5"),
        (format!("[package]\n{}", source("uncore_w", "[2, 4e9]")), "around 2.5"),
        (format!("[package]\n{}", source("idle", "[0.1, 4]")), "no common range"),
        (format!("[topology]\n{}", source("clocks", "'+-3%'")), "topology.clocks.range: it is a fact"),
        (
            "[platform]\nsource = 's'\nconfidence = 'guess'\nrange = [3, 5]".into(),
            "figures have no common range",
        ),
    ] {
        // The platform's own figures have a common table, so that two of them can share a range by mistake.
        let tables = match tables.starts_with("[platform]") {
            true => tables.replace("[platform]", "[platform]\nmigration_us = 4"),
            false => tables,
        };
        let message = with(&tables).expect_err(&tables);
        assert!(message.starts_with("m.toml: ") && message.contains(part), "{tables}: {message}");
        assert!(!message.contains('\n'), "{message}");
    }
}
