//! The bundled machine models.

/// A line each: to add one, write its file and name it here.
const WRITTEN: &[(&str, &str)] = &[
    ("alderlake-p-laptop", include_str!("../../../../machines/alderlake-p-laptop.toml")),
    ("bursts-v1", include_str!("../../../../machines/bursts-v1.toml")),
    ("core-i5-2gen", include_str!("../../../../machines/core-i5-2gen.toml")),
    ("i7-4510u", include_str!("../../../../machines/i7-4510u.toml")),
    ("omap3530", include_str!("../../../../machines/omap3530.toml")),
    ("openbsd-laptop", include_str!("../../../../machines/openbsd-laptop.toml")),
    ("recording-vm", include_str!("../../../../machines/recording-vm.toml")),
    ("sapphire-rapids-server", include_str!("../../../../machines/sapphire-rapids-server.toml")),
    ("thinkpad-r51", include_str!("../../../../machines/thinkpad-r51.toml")),
    ("thinkpad-r51-tstates", include_str!("../../../../machines/thinkpad-r51-tstates.toml")),
    ("xeon-4210", include_str!("../../../../machines/xeon-4210.toml")),
];

/// Made by `cargo xtask machines` from others' measurements: never edited.
const MEASURED: &[(&str, &str)] = &[
    ("exynos5250", include_str!("../../../../machines/measured/exynos5250.toml")),
    ("exynos7880", include_str!("../../../../machines/measured/exynos7880.toml")),
    ("gs101", include_str!("../../../../machines/measured/gs101.toml")),
    ("msm8953", include_str!("../../../../machines/measured/msm8953.toml")),
    ("msm8996", include_str!("../../../../machines/measured/msm8996.toml")),
    ("msm8998", include_str!("../../../../machines/measured/msm8998.toml")),
    ("sdm439", include_str!("../../../../machines/measured/sdm439.toml")),
    ("sdm630", include_str!("../../../../machines/measured/sdm630.toml")),
    ("sdm632", include_str!("../../../../machines/measured/sdm632.toml")),
    ("sdm636", include_str!("../../../../machines/measured/sdm636.toml")),
    ("sdm670", include_str!("../../../../machines/measured/sdm670.toml")),
    ("sdm845", include_str!("../../../../machines/measured/sdm845.toml")),
    ("sm6115", include_str!("../../../../machines/measured/sm6115.toml")),
    ("sm6150", include_str!("../../../../machines/measured/sm6150.toml")),
    ("sm7125", include_str!("../../../../machines/measured/sm7125.toml")),
    ("sm7150", include_str!("../../../../machines/measured/sm7150.toml")),
    ("sm8150ac", include_str!("../../../../machines/measured/sm8150ac.toml")),
    ("sm8350", include_str!("../../../../machines/measured/sm8350.toml")),
    ("t8103", include_str!("../../../../machines/measured/t8103.toml")),
    ("zuma", include_str!("../../../../machines/measured/zuma.toml")),
];

/// All names: those that people wrote, then the measured ones.
pub fn names() -> impl Iterator<Item = &'static str> {
    written().chain(measured())
}

/// Models that people wrote.
pub fn written() -> impl Iterator<Item = &'static str> {
    WRITTEN.iter().map(|(name, _)| *name)
}

/// Models that were made from others' measurements.
pub fn measured() -> impl Iterator<Item = &'static str> {
    MEASURED.iter().map(|(name, _)| *name)
}

/// A model's file.
pub fn text(name: &str) -> Option<&'static str> {
    WRITTEN.iter().chain(MEASURED).find(|(n, _)| *n == name).map(|(_, text)| *text)
}

/// What the engine takes for granted of every machine.
#[cfg(test)]
pub(super) fn monotone(m: &super::MachineModel) {
    let name = &m.name;
    for k in &m.kinds {
        let slower = |w: &[super::SpeedLevel]| {
            w[0].khz > w[1].khz && w[0].busy_w >= w[1].busy_w && w[0].cycles_per_ns >= w[1].cycles_per_ns
        };
        assert!(k.levels.windows(2).all(slower), "{name} {}", k.name);
        assert!(k.levels.iter().all(|l| l.stall_w <= l.busy_w), "{name}");
        assert_eq!(k.smt_throughput.len(), k.smt_power.len(), "{name}");
        for s in &k.idle {
            assert_eq!((s.watts.len(), s.exit_ns.len()), (k.levels.len(), k.levels.len()), "{name}");
            let worth = s.exit_ns.iter().all(|x| *x <= s.target_ns || s.target_ns == 0);
            assert!(worth, "{name} {}", s.name);
            assert!(s.watts.iter().zip(&k.levels).all(|(w, l)| *w <= l.busy_w), "{name} {}", s.name);
        }
        for w in k.idle.windows(2) {
            let thriftier = w[0].watts.iter().zip(&w[1].watts).all(|(a, b)| a >= b);
            assert!(w[0].latency_ns <= w[1].latency_ns && thriftier, "{name} {}", w[1].name);
        }
    }
    for p in &m.packages {
        let watts: Vec<f64> = [p.uncore_w].into_iter().chain(p.idle.iter().map(|s| s.watts)).collect();
        assert!(watts.windows(2).all(|w| w[0] >= w[1]), "{name}: {watts:?}");
        assert!(p.idle.windows(2).all(|w| w[0].exit_ns <= w[1].exit_ns), "{name}");
        assert!(p.thermal.critical_c > p.thermal.ambient_c, "{name}");
    }
    for d in &m.domains {
        let levels = m.kinds[usize::from(d.kind)].levels.len();
        assert_eq!(d.transition.stall_ns.len(), levels * levels, "{name}");
        assert!(d.boost.iter().all(|&b| usize::from(b) < levels), "{name}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Confidence, MachineModel, file};

    fn machine(name: &str) -> MachineModel {
        file::parse(text(name).unwrap(), name).unwrap()
    }

    #[test]
    fn every_model_is_sound_and_says_where_its_figures_come_from() {
        for name in names() {
            let m = machine(name);
            assert_eq!(m.name, name);
            assert!(m.provenance.len() >= 6, "{name}");
            let own = m.provenance.iter().find(|f| f.what == "platform.default_policy");
            assert!(
                own.is_some_and(|f| !f.source.starts_with("not in the file")),
                "{name}: its system's policy"
            );
        }
    }

    #[test]
    fn every_model_is_monotone() {
        names().for_each(|name| monotone(&machine(name)));
    }

    /// Latencies come from kernels, powers never do: a table of idle states that claims a kernel's
    /// authority names another source for its watts.
    #[test]
    fn no_kernel_table_vouches_for_watts() {
        for name in names() {
            let m = machine(name);
            for f in m.provenance.iter().filter(|f| f.what.ends_with(".idle")) {
                let own = format!("{}.watts", f.what);
                let split = m.provenance.iter().any(|g| g.what == own);
                assert!(f.confidence != Confidence::KernelTable || split, "{name}: {}", f.what);
            }
        }
    }

    /// Watts at rest and at full load, platform included, against what such computers draw: package
    /// limits and the platform's share. A wide gate, to catch a slip of the comma.
    #[test]
    fn totals_are_those_of_such_computers() {
        for (name, rest, full) in [
            ("alderlake-p-laptop", 3.0..6.0, 25.0..50.0), // 28 W base power, 64 W for seconds
            ("core-i5-2gen", 19.9..20.1, 89.9..90.1),     // study 002: 20 W and 90 W
            ("i7-4510u", 4.0..8.0, 17.0..27.0),           // 15 W TDP
            ("omap3530", 1.0..2.0, 1.5..3.0),
            ("openbsd-laptop", 10.5..10.6, 23.1..23.2), // study 001
            ("sapphire-rapids-server", 200.0..350.0, 700.0..1000.0), // 2 x 350 W
            ("thinkpad-r51", 11.0..16.0, 33.0..40.0),   // 24.5 W TDP
            ("xeon-4210", 80.0..120.0, 220.0..260.0),   // 2 x 85 W
        ] {
            let (r, f) = machine(name).rest_and_full_w();
            println!("{name:24} rest {r:7.2} W, full {f:7.2} W");
            assert!(rest.contains(&r) && full.contains(&f), "{name}: {r} W, {f} W");
        }
    }

    #[test]
    fn figures_of_the_reference_are_in_the_models() {
        let r51 = machine("thinkpad-r51");
        assert_eq!(r51.domains[0].transition.stall_ns[5], 2_892_000);
        assert_eq!(r51.domains[0].transition.stall_ns[30], 735_000);
        let levels = &r51.kinds[0].levels;
        assert!((levels[0].busy_w - 24.5).abs() < 0.1 && (levels[5].busy_w - 6.0).abs() < 0.1);
        // 600 MHz at 0.956 V.
        let watts = 5.25 * 0.956 * 0.956 * 0.6 + 3.26 * 0.956;
        assert!((levels[5].busy_w - watts).abs() < 1e-9);
        // Halted at the lowest and at the highest speed: the two temperatures of study 000.
        let t = r51.packages[0].thermal;
        let halted = |level: usize| t.ambient_c + t.c_per_w * r51.kinds[0].idle[0].watts[level];
        assert!((halted(5) - 34.0).abs() < 0.1 && (halted(0) - 45.0).abs() < 0.1);
        let speeds: Vec<u32> =
            machine("thinkpad-r51-tstates").kinds[0].levels.iter().map(|l| l.khz / 1000).collect();
        assert_eq!(
            speeds,
            [1700, 1487, 1400, 1225, 1200, 1050, 1000, 875, 800, 700, 600, 525, 450, 375, 300, 225, 150, 75]
        );
        // A change of duty cycle alone costs the throttling delay, one of P-state the matrix's figure.
        let throttled = machine("thinkpad-r51-tstates");
        let n = throttled.kinds[0].levels.len();
        assert_eq!(throttled.domains[0].transition.stall_ns[(n - 2) * n + n - 1], 43_500);
        assert_eq!(throttled.domains[0].transition.stall_ns[n - 1], 2_892_000);
        let omap = machine("omap3530");
        assert_eq!(omap.kinds[0].idle[6].target_ns, 300_000_000);
        assert_eq!(machine("sapphire-rapids-server").cpus.len(), 224);
        let xeon = machine("xeon-4210");
        let p: Vec<u32> = xeon.kinds[0].levels.iter().map(|l| l.khz / 100_000).collect();
        assert_eq!(p, (8..=22).rev().collect::<Vec<u32>>());
        assert_eq!(xeon.kinds[0].idle[2].exit_ns[0], 40_000);
        let openbsd = machine("openbsd-laptop");
        let levels = &openbsd.kinds[0].levels;
        assert!((f64::from(levels[1].khz) / f64::from(levels[0].khz) - 871.0 / 1123.0).abs() < 1e-6);
        for (level, watts) in [(0, 5.60 * 3600.0 / 871.0), (1, 5.90 * 3600.0 / 1123.0)] {
            assert!((openbsd.platform_w + 4.0 * levels[level].busy_w - watts).abs() < 0.001);
        }
    }

    /// Study 002 weighted whole-machine watts with residencies; the model's cores must give the same
    /// sum. Rows: C0, C1, C3, C7 in percent, mean of four CPUs, and its figure in watts.
    #[test]
    fn core_i5_reproduces_the_weighted_powers() {
        let m = machine("core-i5-2gen");
        let k = &m.kinds[0];
        // What one CPU adds: half of its core's power; a busy thread is what it makes of a core in C1.
        let c0 = k.levels[0].busy_w * k.smt_power[1] / 2.0;
        let state = |n: &str| k.idle.iter().find(|s| s.name == n).unwrap().watts[0] / 2.0;
        assert!((k.levels[0].busy_w - (c0 + state("C1"))).abs() < 1e-6);
        for (row, published) in [
            ([7.58, 70.63, 20.37, 1.35], 62.79),
            ([7.81, 81.25, 10.34, 0.56], 64.02),
            ([7.03, 43.44, 0.54, 48.99], 43.79),
            ([36.78, 19.91, 1.19, 41.91], 54.68),
            ([36.41, 19.03, 0.89, 43.47], 53.94),
            ([29.95, 23.95, 0.54, 45.47], 51.43),
        ] {
            let each = [c0, state("C1"), state("C3"), state("C7")];
            let watts: f64 = row.iter().zip(each).map(|(pct, w)| 4.0 * pct / 100.0 * w).sum();
            assert!((watts - published).abs() < 0.006, "{watts} {published}");
        }
    }
}
