//! The bundled machine models.

/// A line each: to add one, write its file and name it here.
const FILES: &[(&str, &str)] = &[
    ("alderlake-p-laptop", include_str!("../../../machines/alderlake-p-laptop.toml")),
    ("bursts-v1", include_str!("../../../machines/bursts-v1.toml")),
    ("core-i5-2gen", include_str!("../../../machines/core-i5-2gen.toml")),
    ("i7-4510u", include_str!("../../../machines/i7-4510u.toml")),
    ("omap3530", include_str!("../../../machines/omap3530.toml")),
    ("openbsd-laptop", include_str!("../../../machines/openbsd-laptop.toml")),
    ("recording-vm", include_str!("../../../machines/recording-vm.toml")),
    ("sapphire-rapids-server", include_str!("../../../machines/sapphire-rapids-server.toml")),
    ("thinkpad-r51", include_str!("../../../machines/thinkpad-r51.toml")),
    ("thinkpad-r51-tstates", include_str!("../../../machines/thinkpad-r51-tstates.toml")),
    ("xeon-4210", include_str!("../../../machines/xeon-4210.toml")),
];

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// A model's file.
pub fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Machine, file};

    fn machine(name: &str) -> Machine {
        file::parse(text(name).unwrap(), name).unwrap()
    }

    #[test]
    fn every_model_is_sound_and_says_where_its_figures_come_from() {
        for name in names() {
            let m = machine(name);
            assert_eq!(m.name, name);
            assert!(m.provenance.len() >= 6, "{name}");
            let (idle, item) = m.default_idle.split_once(':').unwrap_or((&m.default_idle, ""));
            let found = wattwise_policy::idle::find(idle).unwrap();
            wattwise_policy::Settings::parse(found.params, item).unwrap();
        }
    }

    #[test]
    fn figures_of_the_reference_are_in_the_models() {
        let r51 = machine("thinkpad-r51");
        assert_eq!(r51.domains[0].transition.stall_ns[5], 2_892_000);
        assert_eq!(r51.domains[0].transition.stall_ns[30], 735_000);
        let levels = &r51.kinds[0].levels;
        assert!((levels[0].busy_w - 24.5).abs() < 0.1 && (levels[5].busy_w - 6.0).abs() < 0.1);
        let speeds: Vec<u32> =
            machine("thinkpad-r51-tstates").kinds[0].levels.iter().map(|l| l.khz / 1000).collect();
        assert_eq!(
            speeds,
            [1700, 1487, 1400, 1225, 1200, 1050, 1000, 875, 800, 700, 600, 525, 450, 375, 300, 225, 150, 75]
        );
        let omap = machine("omap3530");
        assert_eq!(omap.kinds[0].idle[6].target_ns, 300_000_000);
        assert_eq!(machine("sapphire-rapids-server").cpus.len(), 224);
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
