//! Memory governors: at which clock a memory controller runs. Linux's devfreq has one for each device whose clock it may set.
//!
//! - Every period (50 ms where the driver asks for nothing else) the controller's own counters say in what share of its cycles data went
//!   over the wires at the present clock.
//! - `simple_ondemand`: above a load of `up` percent the highest clock. From `up` less `down` to there the clock stays. Below, the
//!   lowest at which that traffic would take no more than `up` less half of `down`.
//! - `dmc_ondemand` is the same rule with Rockchip's thresholds, as its drivers set them in their device trees.
//! - A program that waits for one address after another moves few data while it waits. So its load stays below `up` at the lowest clock,
//!   where each of its waits is longest: the rule follows bandwidth, and latency is what is lost.
//!
//! Sources: Linux 6.12, `drivers/devfreq/governor_simpleondemand.c`, `devfreq.c` (`devfreq_recommended_opp`: the next clock that is
//! no lower); Rockchip's kernel 5.10, `drivers/devfreq/rockchip_dmc.c` (`devfreq_dmc_ondemand_func`) and `rk3588s.dtsi`.

use crate::chosen::ChoiceError;
use crate::{Khz, Param, ParamKind, Settings, SpecError};
use alloc::format;

/// How a governor chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Highest,
    Lowest,
    Fixed,
    ByLoad,
}

/// A memory governor's name, help and parameters: the line that the table holds.
#[derive(Debug)]
pub struct Dram {
    /// The word on the command line, which is devfreq's.
    pub name: &'static str,
    /// One line of help.
    pub summary: &'static str,
    /// Whose rule it is.
    pub follows: &'static str,
    /// Parameters, in the order of [`Settings`].
    pub params: &'static [Param],
    rule: Rule,
}

/// This file's text; its opening comment is the documentation ([`crate::essay`]).
pub const SOURCE: &str = include_str!("dram.rs");

const FOLLOWS: &str = "Linux 6.12, drivers/devfreq/";
const UP: &str = "up";
const DOWN: &str = "down";
const KHZ: &str = "khz";

const fn percent(name: &'static str, help: &'static str, default: f64) -> Param {
    Param { name, help, kind: ParamKind::Number { unit: "%", min: 1.0, max: 100.0, default } }
}

const fn thresholds(up: f64, down: f64) -> [Param; 2] {
    [
        percent(UP, "load above which the highest clock is taken", up),
        percent(DOWN, "how far below that the load must be before the clock falls", down),
    ]
}

const PERFORMANCE: Dram = Dram {
    name: "performance",
    summary: "always the highest clock",
    follows: FOLLOWS,
    params: &[],
    rule: Rule::Highest,
};

/// Every memory governor.
pub static ALL: &[Dram] = &[
    Dram {
        name: "simple_ondemand",
        summary: "the clock follows the memory's traffic",
        follows: FOLLOWS,
        params: &const { thresholds(90.0, 5.0) },
        rule: Rule::ByLoad,
    },
    Dram {
        name: "dmc_ondemand",
        summary: "as simple_ondemand, with Rockchip's thresholds",
        follows: "Rockchip's Linux 5.10, drivers/devfreq/rockchip_dmc.c",
        params: &const { thresholds(40.0, 20.0) },
        rule: Rule::ByLoad,
    },
    PERFORMANCE,
    Dram {
        name: "powersave",
        summary: "always the lowest clock",
        follows: FOLLOWS,
        params: &[],
        rule: Rule::Lowest,
    },
    Dram {
        name: "userspace",
        summary: "one clock, the next that is no lower",
        follows: FOLLOWS,
        params: &[Param {
            name: KHZ,
            help: "the clock",
            kind: ParamKind::Number { unit: "kHz", min: 1.0, max: 1e8, default: 1e8 },
        }],
        rule: Rule::Fixed,
    },
];

/// The governor of that name.
pub fn find(name: &str) -> Option<&'static Dram> {
    ALL.iter().find(|d| d.name == name)
}

/// A chosen memory governor.
#[derive(Clone, Debug)]
pub struct DramSpec {
    /// The governor.
    pub dram: &'static Dram,
    /// Its parameters.
    pub settings: Settings,
}

impl DramSpec {
    /// The highest clock, always.
    pub fn highest() -> DramSpec {
        DramSpec { dram: &PERFORMANCE, settings: Settings::defaults(PERFORMANCE.params) }
    }

    /// Reads `NAME[:key=value,...]`, with commas or, as `wattwise set --dram` has them, colons.
    ///
    /// # Errors
    /// When there is no memory governor of that name, it takes no such parameter, or its thresholds would never let the clock change.
    pub fn parse(text: &str) -> Result<DramSpec, ChoiceError> {
        let (name, list) = text.split_once(':').unwrap_or((text, ""));
        let dram = find(name).ok_or(ChoiceError::Unknown)?;
        let settings =
            Settings::parse(dram.params, &list.replace(':', ",")).map_err(ChoiceError::Settings)?;
        let spec = DramSpec { dram, settings };
        match spec.mistake() {
            None => Ok(spec),
            Some(mistake) => Err(ChoiceError::Settings(mistake)),
        }
    }

    /// What is wrong with its thresholds: the kernel takes whole ones, and leaves the clock alone where `down` is above `up`.
    fn mistake(&self) -> Option<SpecError> {
        let (up, down) = self.thresholds()?;
        let wrong = |param, given: f64, expected| {
            Some(SpecError::BadValue { param, given: format!("{given}"), expected })
        };
        for (param, given) in [(UP, up), (DOWN, down)] {
            if f64::from(given as u32) != given {
                return wrong(param, given, "a whole number from 1 to 100 %".into());
            }
        }
        match down > up {
            true => wrong(DOWN, down, format!("at most up, {up} %, or the clock never changes")),
            false => None,
        }
    }

    /// Its thresholds in percent, `up` and `down`, where it follows the load.
    pub fn thresholds(&self) -> Option<(f64, f64)> {
        let is_by_load = self.dram.rule == Rule::ByLoad;
        is_by_load.then(|| (self.settings.number(UP), self.settings.number(DOWN)))
    }

    /// The clock wanted, as an index of `clocks` (fastest first, never empty), at the present one `now` after a period in which
    /// the share `load` of its cycles carried data.
    pub fn choose(&self, load: f64, now: usize, clocks: &[Khz]) -> usize {
        let no_lower = |khz: f64| clocks.iter().rposition(|c| f64::from(c.0) >= khz).unwrap_or(0);
        match self.dram.rule {
            Rule::Highest => 0,
            Rule::Lowest => clocks.len().saturating_sub(1),
            Rule::Fixed => no_lower(self.settings.number(KHZ)),
            Rule::ByLoad => {
                let (up, down) = (self.settings.number(UP), self.settings.number(DOWN));
                let percent = load * 100.0;
                match () {
                    () if percent > up => 0,
                    () if percent > up - down => now,
                    () => {
                        let khz = clocks.get(now).map_or(0.0, |c| f64::from(c.0));
                        // The kernel counts in whole percent.
                        no_lower(khz * percent / (up - f64::from(down as u32 / 2)))
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCKS: [Khz; 4] = [Khz(2_112_000), Khz(1_560_000), Khz(1_068_000), Khz(528_000)];

    fn chosen(text: &str, load: f64, now: usize) -> u32 {
        let spec = DramSpec::parse(text).unwrap_or_else(|_| panic!("{text}"));
        CLOCKS[spec.choose(load, now, &CLOCKS)].0 / 1000
    }

    /// By hand, as the kernel's integers have it: 0.15 x 2112 / 0.30 = 1056, so 1068; 0.10 x 528 / 0.30 = 176, so 528.
    #[test]
    fn the_clock_follows_the_traffic() {
        assert_eq!(chosen("dmc_ondemand", 0.41, 3), 2112, "above up");
        assert_eq!(chosen("dmc_ondemand", 0.40, 3), 528, "not above");
        assert_eq!(chosen("dmc_ondemand", 0.21, 1), 1560, "between");
        assert_eq!(chosen("dmc_ondemand", 0.15, 0), 1068);
        assert_eq!(chosen("dmc_ondemand", 0.10, 3), 528);
        assert_eq!(chosen("dmc_ondemand", 0.0, 0), 528);
        // 0.84 x 1068 / 0.88 = 1019, whose next clock is 1068 again: half of 5 is 2 to the kernel.
        assert_eq!(chosen("simple_ondemand", 0.84, 2), 1068);
        assert_eq!(chosen("simple_ondemand", 0.91, 2), 2112);
    }

    /// With `down` as great as `up` no load but none is below: once at the highest clock, always there while anything runs.
    #[test]
    fn a_wide_difference_holds_the_clock() {
        assert_eq!(chosen("dmc_ondemand:up=20,down=20", 0.01, 0), 2112);
        assert_eq!(chosen("dmc_ondemand:up=20,down=20", 0.0, 0), 528);
        for wrong in ["dmc_ondemand:up=20,down=30", "dmc_ondemand:up=10", "dmc_ondemand:up=20.5"] {
            assert!(matches!(DramSpec::parse(wrong), Err(ChoiceError::Settings(_))), "{wrong}");
        }
    }

    #[test]
    fn fixed_clocks_are_clocks_of_the_memory() {
        assert_eq!(chosen("performance", 0.0, 3), 2112);
        assert_eq!(DramSpec::highest().dram.name, "performance");
        assert_eq!(chosen("powersave", 1.0, 0), 528);
        assert_eq!(chosen("userspace:khz=1GHz", 1.0, 0), 1068);
        assert_eq!(chosen("userspace:khz=9GHz", 1.0, 3), 2112, "none is that high: the highest");
        assert!(matches!(DramSpec::parse("ondemand"), Err(ChoiceError::Unknown)));
        assert!(matches!(DramSpec::parse("dmc_ondemand:up=0"), Err(ChoiceError::Settings(_))));
    }
}
