//! A machine from its data sheet: cores, clocks and design power, where nobody measured its watts.
//!
//! ```toml
//! [sheet]
//! name = "i7-8700"
//! class = "desktop"                # laptop, desktop, server or board
//! cores = 6                        # a package
//! threads = 2                      # a core
//! mhz = [800, 3200]                # lowest, and highest without boost
//! boost_mhz = [4600, 4500, 4400]   # with 1, 2, ... cores awake; the last holds for more
//! tdp_w = 65                       # a package
//! clocks = "package"               # whose clock is its own: core or package
//! idle = "skylake"                 # whose C-states it has: a family of intel_idle.c, or "zen", "arm"
//! sleeps = true                    # false: a package never sleeps, by its firmware's limit or as another package is at work
//! poll = true                      # before them a state POLL, as Linux has it on x86; without the key: unless idle is "arm"
//! source = "Intel ARK"
//! # packages = 1
//! # step_mhz = 100                 # between two speeds
//! # asked_mhz = [3200, 800]        # what the driver can ask for, fastest first, where that is not each speed
//! # driver = "intel_pstate-hwp"
//! # default_policy = "schedutil"
//! # cpu_names = ["i7-8700"]        # parts of processors' names: recordings made on one are replayed on this machine
//! ```
//!
//! The result is an ordinary machine file. What no sheet tells is drawn, and drawn together where it hangs together
//! (the file's `draws`), from intervals by class of machine (`sheet/class.rs`):
//!
//! - *Voltage*: flat up to some clock, then rising with a power of the clock up to the highest boost. A core draws
//!   `C V^2 f + L V^2`; the second is leakage.
//! - *Shares*: how much of the design power all cores draw at the base clock with common work, and how much the
//!   package draws beside them.
//! - *Uncore and memory* follow the package's fastest core, and the design power is a limit ([`mod@crate::machine::file`]).
//! - *Idle*: what a halted core still draws of a busy one's watts at the same voltage, and what a package draws when all its
//!   cores sleep.
//!
//! The intervals are guesses by class that no one machine was fitted to; whoever has a calibrating measurement narrows them.

mod class;
mod text;

use class::{BOARD, Between, Class, DESKTOP, IDLE, LAPTOP, SERVER, State};
use serde::Deserialize;
use wattwise_figure::mistake::sentence;
use wattwise_figure::nearest;

/// A sheet that cannot be used: what was expected, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SheetError(String);

/// Watts of a core that polls, of common work's.
const POLLING: f64 = 0.2;

/// What a data sheet says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sheet {
    name: String,
    class: ClassWord,
    #[serde(default = "one")]
    packages: usize,
    cores: usize,
    #[serde(default = "one")]
    threads: usize,
    /// The lowest clock, and the highest without boost.
    mhz: [f64; 2],
    #[serde(default)]
    boost_mhz: Vec<f64>,
    /// Between two speeds.
    #[serde(default = "hundred")]
    step_mhz: f64,
    /// What the driver can ask for, fastest first, where that is not each speed.
    #[serde(default)]
    asked_mhz: Vec<f64>,
    tdp_w: f64,
    #[serde(default)]
    clocks: ClocksWord,
    idle: String,
    /// Whether packages have a sleep of their own.
    #[serde(default = "yes")]
    sleeps: bool,
    /// Whether idle cores may poll: a state before the others. Linux has one on x86.
    poll: Option<bool>,
    #[serde(default)]
    driver: String,
    #[serde(default = "schedutil")]
    default_policy: String,
    #[serde(default)]
    cpu_names: Vec<String>,
    source: String,
}

fn yes() -> bool {
    true
}

fn one() -> usize {
    1
}
fn hundred() -> f64 {
    100.0
}
fn schedutil() -> String {
    "schedutil".into()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ClassWord {
    Laptop,
    Desktop,
    Server,
    Board,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ClocksWord {
    Core,
    #[default]
    Package,
}

/// One draw of what a sheet does not tell.
struct Law {
    v_low: f64,
    flat: f64,
    bend: f64,
    leak: f64,
    cores_w: f64,
    uncore_w: f64,
    halted: f64,
    asleep: f64,
}

impl Law {
    /// Each figure at a share of its interval.
    fn at(class: &Class, mut share: impl FnMut() -> f64) -> Law {
        let mut of = |b: Between| b[0] + (b[1] - b[0]) * share();
        Law {
            v_low: of(class.v_low),
            flat: of(class.flat),
            bend: of(class.bend),
            leak: of(class.leak),
            cores_w: of(class.cores),
            uncore_w: of(class.uncore),
            halted: of(class.halted),
            asleep: of(class.asleep),
        }
    }

    /// Voltage at a share of the clocks' range, of the highest.
    fn volts(&self, share: f64) -> f64 {
        let above = ((share - self.flat) / (1.0 - self.flat)).clamp(0.0, 1.0);
        self.v_low + (1.0 - self.v_low) * above.powf(self.bend)
    }
}

/// A drawn machine's figures.
struct DrawnFigures {
    /// A busy core at each speed, fastest first.
    busy_w: Vec<f64>,
    /// A halted core at the highest and at the lowest speed.
    halted_w: [f64; 2],
    /// One that polls.
    polling_w: [f64; 2],
    uncore_w: f64,
    asleep_w: f64,
}

impl Sheet {
    /// Reads the `[sheet]` table.
    ///
    /// # Errors
    /// A sentence with the key, what was found and what was expected.
    pub fn read(table: toml::Table) -> Result<Sheet, SheetError> {
        let wrong = |e: toml::de::Error| SheetError(format!("sheet: {}", sentence(e.message())));
        let sheet = Sheet::deserialize(table).map_err(wrong)?;
        let check = |what: &str, value: f64, low: f64, high: f64| {
            let fits = value.is_finite() && (low..=high).contains(&value);
            fits.then_some(())
                .ok_or_else(|| SheetError(format!("sheet.{what} = {value}: expected {low} to {high}")))
        };
        let [low, base] = sheet.mhz;
        check("mhz", low, 1.0, 10_000.0)?;
        check("mhz", base, low, 10_000.0)?;
        check("step_mhz", sheet.step_mhz, 1.0, 1_000.0)?;
        check("tdp_w", sheet.tdp_w, 0.1, 2_000.0)?;
        check("cores", sheet.cores as f64, 1.0, 512.0)?;
        check("packages", sheet.packages as f64, 1.0, 16.0)?;
        check("threads", sheet.threads as f64, 1.0, 8.0)?;
        for &mhz in &sheet.asked_mhz {
            check("asked_mhz", mhz, low, base)?;
        }
        for &mhz in &sheet.boost_mhz {
            check("boost_mhz", mhz, base, 10_000.0)?;
        }
        if sheet.boost_mhz.windows(2).any(|w| w[1] > w[0]) {
            return Err(SheetError("sheet.boost_mhz: more awake cores never allow a higher clock".into()));
        }
        if !IDLE.iter().any(|(family, _)| *family == sheet.idle) {
            let near = nearest(&sheet.idle, IDLE.iter().map(|(family, _)| *family));
            let all: Vec<&str> = IDLE.iter().map(|(family, _)| *family).collect();
            return Err(SheetError(format!(
                "sheet.idle = '{}': expected {}; did you mean '{near}'?",
                sheet.idle,
                all.join(", ")
            )));
        }
        Ok(sheet)
    }

    fn class(&self) -> Class {
        match (self.class, self.idle.as_str()) {
            (ClassWord::Laptop, _) => LAPTOP,
            // Often a die of its own for memory and PCI Express. Beside the cores were metered, with all of them at work: 17.4 of the
            // design power's 65 W (Ryzen 3 1200), 19.1 of 65 (5 1500X), 19.4 of 95 (7 1700X; AnandTech, Ryzen 3 review, 2017) and
            // 52 of 170 (9 7950X; turbostat in MangoHud's issue 1390).
            // Their sockets' limit, 1.35 of the design power, is reached by parts of 16 cores with all at work (5950X, 9950X; a Threadripper
            // 1950X is just below). Asleep, that one drew 0.8 of what it draws beside its cores awake (codecarbon's load profiles).
            (ClassWord::Desktop, "zen") => {
                Class { cores: [0.4, 0.95], uncore: [0.08, 0.32], asleep: [0.3, 0.95], ..DESKTOP }
            }
            (ClassWord::Desktop, _) => DESKTOP,
            // An EPYC 8024P, whose I/O die serves 64 cores in its siblings, drew 0.4 of its design power beside one busy core and half of
            // that asleep (codecarbon's load profiles).
            (ClassWord::Server, "zen") => Class { uncore: [0.15, 0.5], asleep: [0.4, 0.95], ..SERVER },
            // One ring, no mesh: two packages of an E5-2670 v3 drew 29 W under light work and of a 12-core E5 v2 26 W beside the
            // busy cores, an E3-1240 v5 13 W with a core at work, an E3-1240L v5 5 W with all at work.
            (ClassWord::Server, "sandy-bridge" | "ivy-bridge" | "haswell" | "skylake") => {
                Class { uncore: [0.05, 0.17], asleep: [0.5, 1.0], ..SERVER }
            }
            // Firmware often leaves the package's own sleep off.
            (ClassWord::Server, _) => Class { asleep: [0.5, 1.0], ..SERVER },
            (ClassWord::Board, _) => BOARD,
        }
    }

    fn states(&self) -> &'static [State] {
        IDLE.iter().find(|(family, _)| *family == self.idle).map_or(&[], |(_, states)| states)
    }

    /// All speeds, fastest first.
    fn speeds(&self) -> Vec<f64> {
        let [low, base] = self.mhz;
        let mut all: Vec<f64> = self.boost_mhz.clone();
        all.extend([low, base]);
        all.extend(&self.asked_mhz);
        let top = all.iter().copied().fold(base, f64::max);
        let steps = ((top - low) / self.step_mhz).floor() as usize;
        all.extend((1..=steps).map(|i| low + i as f64 * self.step_mhz));
        all.sort_by(|a, b| b.total_cmp(a));
        all.dedup_by(|a, b| (*a - *b).abs() < 1.0);
        all
    }

    fn figures(&self, law: &Law, speeds: &[f64]) -> DrawnFigures {
        let (top, low) = (speeds[0], speeds[speeds.len() - 1]);
        let share = |mhz: f64| if top > low { (mhz - low) / (top - low) } else { 1.0 };
        let at = |mhz: f64| {
            let v = law.volts(share(mhz));
            (v * v * mhz, v * v)
        };
        let base_w = law.cores_w * self.tdp_w / self.cores as f64;
        let (dynamic, leaking) = at(self.mhz[1]);
        let (c, l) = ((1.0 - law.leak) * base_w / dynamic, law.leak * base_w / leaking);
        let watts = |mhz: f64| {
            let (dynamic, leaking) = at(mhz);
            c * dynamic + l * leaking
        };
        let busy_w: Vec<f64> = speeds.iter().map(|&mhz| watts(mhz)).collect();
        let uncore_w = law.uncore_w * self.tdp_w;
        DrawnFigures {
            halted_w: [busy_w[0] * law.halted, busy_w[busy_w.len() - 1] * law.halted],
            polling_w: [busy_w[0] * POLLING, busy_w[busy_w.len() - 1] * POLLING],
            busy_w,
            uncore_w,
            asleep_w: uncore_w * law.asleep,
        }
    }

    /// The machine file.
    pub fn machine_text(&self) -> String {
        let speeds = self.speeds();
        let class = &self.class();
        let nominal = self.figures(&Law::at(class, || 0.5), &speeds);
        let mut text = self.head();
        self.speeds_text(&mut text, &speeds, &nominal);
        self.idle_text(&mut text, &nominal);
        self.rest_text(&mut text, &nominal);
        self.draws_text(&mut text, &speeds, &nominal);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::file::parse;

    const I7: &str = "name = 'x'\nclass = 'desktop'\ncores = 6\nthreads = 2\nmhz = [800, 3200]\n\
                      boost_mhz = [4600, 4500, 4400, 4300]\ntdp_w = 65\nidle = 'skylake'\nsource = 's'\n";

    fn sheet(text: &str) -> Result<Sheet, SheetError> {
        Sheet::read(text.parse().unwrap())
    }

    #[test]
    fn a_sheet_is_a_machine_of_its_cores_and_clocks() {
        let machine = parse(&sheet(I7).unwrap().machine_text(), "sheet").unwrap();
        assert_eq!((machine.cpus.len(), machine.cores.len()), (12, 6));
        let levels = &machine.kinds[0].levels;
        assert_eq!((levels[0].khz, levels[levels.len() - 1].khz), (4_600_000, 800_000));
        assert_eq!(machine.kinds[0].base_khz, 3_200_000);
        // All cores at the base clock with common work, and the package: within the design power.
        let base = levels.iter().find(|l| l.khz == 3_200_000).unwrap().busy_w;
        let sum = 6.0 * base + machine.packages[0].uncore_w;
        assert!((30.0..65.0).contains(&sum), "{sum}");
    }

    #[test]
    fn a_package_sleeps_alone_only_where_it_is_alone() {
        let states = |more: &str| {
            let machine = parse(&sheet(&format!("{I7}{more}")).unwrap().machine_text(), "sheet").unwrap();
            machine
                .packages
                .iter()
                .map(|p| p.idle.iter().map(|s| s.every_package).collect())
                .collect::<Vec<Vec<_>>>()
        };
        assert_eq!(states(""), [vec![false]]);
        assert_eq!(states("packages = 2\n"), [vec![true], vec![true]]);
        assert_eq!(states("sleeps = false\n"), [Vec::<bool>::new()]);
    }

    /// By hand: half of what the firmware says of C2 (120 us), of which the core's part is 0.6; C3 (1034 us) is the same core state.
    #[test]
    fn a_core_leaves_all_its_deep_states_in_the_same_time() {
        let acpi = I7.replace("idle = 'skylake'", "idle = 'comet-lake-acpi'");
        let machine = parse(&sheet(&acpi).unwrap().machine_text(), "sheet").unwrap();
        let exits: Vec<u64> = machine.kinds[0].idle.iter().map(|s| s.exit_ns[0]).collect();
        assert_eq!(exits, [0, 1_000, 36_000, 36_000], "POLL, C1, C2, C3");
        assert_eq!(machine.kinds[0].idle[3].latency_ns, 1_034_000);
    }

    #[test]
    fn figures_are_drawn_together_and_keep_the_order_of_speeds() {
        let machine = parse(&sheet(I7).unwrap().machine_text(), "sheet").unwrap();
        let mut ratios: Vec<f64> = (1..40)
            .map(|seed| {
                let (drawn, _) = machine.draw(seed);
                let levels = &drawn.kinds[0].levels;
                assert!(levels.windows(2).all(|w| w[0].busy_w >= w[1].busy_w));
                levels[0].busy_w / levels[levels.len() - 1].busy_w
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        // Clocks differ by 5.75: without a change of voltage so much, with a halved voltage four times that.
        assert!(ratios[0] > 5.0 && ratios[38] < 24.0, "{ratios:?}");
        assert!(ratios[38] / ratios[0] > 1.4, "the voltage's slope is drawn: {ratios:?}");
    }

    #[test]
    fn mistakes_are_said_with_their_key() {
        for (from, to, part) in [
            ("mhz = [800, 3200]", "mhz = [3200, 800]", "sheet.mhz = 800: expected 3200"),
            ("'skylake'", "'skylke'", "did you mean 'skylake'?"),
            ("[4600, 4500", "[4500, 4600", "boost_mhz: more awake cores"),
            ("tdp_w = 65", "tdp_w = 0", "sheet.tdp_w = 0"),
            ("tdp_w", "tpd_w", "unknown field `tpd_w`"),
        ] {
            let error = sheet(&I7.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
