use super::*;
use crate::machine::figures::Spread;
use crate::machine::{builtin, file};

fn bundled() -> impl Iterator<Item = MachineModel> {
    builtin::names().map(|name| file::parse(builtin::text(name).unwrap(), name).unwrap())
}

/// All that the engine sees, without the file.
fn tables(m: &MachineModel) -> String {
    format!(
        "{:?}",
        (
            &m.cpus,
            &m.cores,
            &m.packages,
            &m.domains,
            &m.kinds,
            m.platform_w,
            m.tick,
            m.migration_ns,
            m.interrupt_ns
        )
    )
}

#[test]
fn no_deviation_is_the_nominal_machine() {
    for m in bundled() {
        let (drawn, by) = m.draw_at(&vec![0.0; m.figures().len()]);
        assert_eq!(tables(&drawn), tables(&m), "{}", m.name);
        assert!(by.iter().all(|d| d.factor == 1.0 && d.z == 0.0));
        assert_eq!(tables(&m.draw_at(&[f64::NAN]).0), tables(&m));
    }
}

#[test]
fn every_drawn_machine_is_sound_and_is_the_one_that_was_drawn() {
    for m in bundled() {
        for seed in 0..300 {
            let scores = m.scores(seed);
            let (drawn, by) = m.draw_at(&scores);
            builtin::monotone(&drawn);
            assert!(by.iter().map(|d| d.z).eq(scores), "{} {seed}: moved", m.name);
            assert_eq!((drawn.cpus.len(), &drawn.name), (m.cpus.len(), &m.name));
        }
    }
}

/// One figure as far off as draws go, the others nominal, and all together.
#[test]
fn the_farthest_draws_are_sound() {
    for m in bundled() {
        let n = m.figures().len();
        for z in [-4.0, 4.0] {
            for i in 0..n {
                let mut scores = vec![0.0; n];
                scores[i] = z;
                let (drawn, by) = m.draw_at(&scores);
                builtin::monotone(&drawn);
                assert_eq!(by[i].z, z, "{}: {} was moved", m.name, by[i].what);
            }
            builtin::monotone(&m.draw_at(&vec![z; n]).0);
        }
        // Beyond all reason it is still a machine.
        builtin::monotone(&m.draw_at(&vec![f64::INFINITY; n]).0);
        builtin::monotone(&m.draw_at(&vec![-1e300; n]).0);
    }
}

#[test]
fn a_figure_moves_what_it_names_and_nothing_else() {
    let m = bundled().find(|m| m.name == "alderlake-p-laptop").unwrap();
    let at = |what: &str, z: f64| {
        let scores: Vec<f64> = m.figures().iter().map(|f| if f.what == what { z } else { 0.0 }).collect();
        m.draw_at(&scores).0
    };
    let up = 1.0_f64.exp().powf(0.25);
    let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
    assert!(close(at("platform.watts", 1.0).platform_w, 3.8 * up));
    // C V^2 f grows, I V stays.
    let level = at("kind.P.speeds.capacitance_nf", 1.0).kinds[0].levels[0].busy_w;
    assert!(close(level, 2.1 * up * 1.2 * 1.2 * 4.4 + 0.7 * 1.2), "{level}");
    // All states by the same factor.
    let idle = &at("kind.P.idle.watts", 1.0).kinds[0].idle;
    assert!(close(idle[0].watts[0], 0.5 * up) && close(idle[3].watts[0], 0.02 * up));
    assert!(close(idle[0].watts[10], 0.35 * up));
    // What policies see stays; what the hardware takes is between 0.3 and 1 of it.
    let slow = &at("kind.P.idle.latency_us", -6.0).kinds[0].idle;
    assert_eq!((slow[1].latency_ns, slow[1].target_ns, slow[1].exit_ns[0]), (170_000, 500_000, 51_000));
    let mut same = at("kind.E.ipc", -1.0);
    assert!(close(same.kinds[1].ipc, 0.68 / up));
    same.kinds[1].ipc = 0.68;
    assert_eq!(tables(&same), tables(&m));
}

#[test]
fn factors_have_the_quantiles_of_the_closed_form() {
    let m = bundled().find(|m| m.name == "alderlake-p-laptop").unwrap();
    let n = 10_000;
    let mut factors: Vec<Vec<f64>> = vec![Vec::new(); m.figures().len()];
    for seed in 0..n {
        for (all, (f, z)) in factors.iter_mut().zip(m.figures().iter().zip(m.scores(seed))) {
            all.push(f.spread.factor(z));
        }
    }
    let z95 = 1.644_853_626_951_472_8;
    for (all, f) in factors.iter_mut().zip(m.figures()) {
        all.sort_by(f64::total_cmp);
        let closed = |p: f64, z: f64| match f.spread {
            Spread::Guess => (0.25 * z).exp(),
            Spread::Within { high, .. } if z >= 0.0 => 1.0 + (high - 1.0) * z / 1.96,
            Spread::Within { low, .. } => low.recip().mul_add(-z / 1.96, 1.0 + z / 1.96).recip(),
            Spread::AtMost { least } => least + (1.0 - least) * p,
        };
        for (p, z) in [(0.05, -z95), (0.5, 0.0), (0.95, z95)] {
            let (seen, expected) = (all[(p * n as f64) as usize], closed(p, z));
            // Four standard errors of the rank, in the widest of the spreads.
            assert!((seen / expected - 1.0).abs() < 0.035, "{} {p}: {seen}, expected {expected}", f.what);
        }
    }
}

/// Figures drawn apart are drawn apart: no two of them correlate beyond chance.
#[test]
fn draws_are_independent() {
    let m = bundled().find(|m| m.name == "alderlake-p-laptop").unwrap();
    let n = 4000;
    let all: Vec<Vec<f64>> = (0..n).map(|seed| m.scores(seed)).collect();
    let normal: Vec<usize> =
        (0..m.figures().len()).filter(|i| !matches!(m.figures()[*i].spread, Spread::AtMost { .. })).collect();
    for (at, &i) in normal.iter().enumerate() {
        for &j in &normal[..at] {
            let r = all.iter().map(|z| z[i] * z[j]).sum::<f64>() / n as f64;
            assert!(
                r.abs() < 5.0 / (n as f64).sqrt(),
                "{} {}: {r}",
                m.figures()[i].what,
                m.figures()[j].what
            );
        }
    }
}

/// The same on every platform. The bits are those of the same steps written down in another language.
#[test]
fn a_seed_has_its_bits() {
    let m = bundled().find(|m| m.name == "alderlake-p-laptop").unwrap();
    let by = m.draw(7).1;
    let platform = by.iter().find(|d| d.what == "platform.watts").unwrap();
    let latency = by.iter().find(|d| d.what == "kind.P.idle.latency_us").unwrap();
    assert_eq!(
        (platform.factor.to_bits(), latency.factor.to_bits()),
        (4_608_542_833_856_106_710, 4_602_992_360_814_741_160)
    );
}

#[test]
fn shares_of_the_draws_become_scores() {
    let m = bundled().find(|m| m.name == "alderlake-p-laptop").unwrap();
    let scores = m.scores_at(&vec![0.5; m.figures().len()]);
    for (f, z) in m.figures().iter().zip(scores) {
        let middle = if matches!(f.spread, Spread::AtMost { .. }) { 0.65 } else { 1.0 };
        assert!((f.spread.factor(z) - middle).abs() < 1e-9, "{}", f.what);
    }
}

/// A file at the edge of what a file may say is drawn within it.
#[test]
fn figures_at_the_edge_stay_within_it() {
    let text = "base = 'alderlake-p-laptop'\nname = 'edge'\n[platform]\nwatts = 9999\nsource = 's'\nconfidence = 'guess'";
    let m = file::parse(text, "m.toml").unwrap();
    for seed in 0..100 {
        let (drawn, by) = m.draw(seed);
        assert!(drawn.platform_w <= 10_000.0);
        let platform = by.iter().find(|d| d.what == "platform.watts").unwrap();
        assert!((drawn.platform_w - 9999.0 * platform.factor).abs() < 1e-6);
    }
}
