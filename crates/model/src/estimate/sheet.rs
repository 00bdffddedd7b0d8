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
//! poll = false                     # true: before them a state POLL, for `idle=poll` and where deeper ones were switched off
//! source = "Intel ARK"
//! ```
//!
//! The result is an ordinary machine file. What no sheet tells is drawn, and drawn together where it hangs together
//! (the file's `draws`), from intervals by class ([`Class`]):
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

use serde::Deserialize;
use std::fmt::Write;
use wattwise_figure::{Random, nearest};

/// Draws in the file: enough for tails of 5 %, few enough for a short file.
const DRAWS: u64 = 96;

/// A sheet that cannot be used: what was expected, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SheetError(String);

/// Time to leave a deep state, at most, of the latency that a firmware's table has.
const FIRMWARE_EXIT: f64 = 0.5;
/// What the memory draws more in its high state, of its watts at rest.
const MEMORY_STEP: f64 = 1.2;
/// Watts of a core that polls, of common work's.
const POLLING: f64 = 0.3;

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
    tdp_w: f64,
    #[serde(default)]
    clocks: ClocksWord,
    idle: String,
    /// Whether idle cores may poll: a state before the others.
    #[serde(default)]
    poll: bool,
    #[serde(default)]
    driver: String,
    #[serde(default = "schedutil")]
    default_policy: String,
    #[serde(default)]
    cpu_names: Vec<String>,
    source: String,
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

/// Even between two ends.
type Between = [f64; 2];

/// What is assumed of machines of a class: guesses, each an even interval.
struct Class {
    /// Voltage at the lowest clock, of that at the highest.
    v_low: Between,
    /// Share of the clocks' range below which the voltage is flat.
    flat: Between,
    /// How the voltage rises from there: 1 evenly, more late.
    bend: Between,
    /// Leakage's share of a busy core's watts at the base clock.
    leak: Between,
    /// Watts of all cores at the base clock with common work, of the design power.
    cores: Between,
    /// Watts of an awake package beside its cores, of the design power.
    uncore: Between,
    /// Watts of a halted core, of a busy one's at the same clock.
    halted: Between,
    /// Watts of a package all of whose cores sleep, of its `uncore`.
    asleep: Between,
    /// Memory at rest, and more for each core at work, in W a package.
    memory: (f64, f64),
    /// The rest of the machine, in W.
    platform: f64,
}

const LAPTOP: Class = Class {
    v_low: [0.50, 0.76],
    flat: [0.0, 0.4],
    bend: [1.0, 1.6],
    leak: [0.06, 0.20],
    cores: [0.45, 0.85],
    uncore: [0.06, 0.22],
    halted: [0.03, 0.25],
    asleep: [0.05, 0.5],
    memory: (0.5, 0.4),
    platform: 4.0,
};

const DESKTOP: Class = Class {
    v_low: [0.45, 0.72],
    cores: [0.40, 0.80],
    uncore: [0.04, 0.16],
    asleep: [0.1, 0.65],
    memory: (0.9, 0.4),
    platform: 25.0,
    ..LAPTOP
};

const SERVER: Class = Class {
    v_low: [0.62, 0.88],
    cores: [0.35, 0.65],
    uncore: [0.12, 0.32],
    asleep: [0.3, 0.8],
    memory: (4.0, 0.4),
    platform: 60.0,
    ..LAPTOP
};

const BOARD: Class = Class {
    v_low: [0.70, 0.95],
    flat: [0.0, 0.5],
    cores: [0.5, 0.9],
    uncore: [0.05, 0.3],
    asleep: [0.5, 1.0],
    memory: (0.15, 0.05),
    platform: 1.0,
    ..LAPTOP
};

/// A C-state: name, latency and target residency in us, and its watts as a share of the halted state's.
type State = (&'static str, f64, f64, f64);

/// C-states by family, shallowest first. Intel: Linux intel_idle.c; AMD and Arm: what their firmware tables usually say.
const IDLE: &[(&str, &[State])] = &[
    ("nehalem", &[("C1", 3.0, 6.0, 1.0), ("C3", 20.0, 80.0, 0.3), ("C6", 200.0, 800.0, 0.05)]),
    (
        "sandy-bridge",
        &[
            ("C1", 2.0, 2.0, 1.0),
            ("C1E", 10.0, 20.0, 0.8),
            ("C3", 80.0, 211.0, 0.3),
            ("C6", 104.0, 345.0, 0.05),
        ],
    ),
    (
        "ivy-bridge",
        &[
            ("C1", 2.0, 2.0, 1.0),
            ("C1E", 10.0, 20.0, 0.8),
            ("C3", 59.0, 156.0, 0.3),
            ("C6", 80.0, 300.0, 0.05),
        ],
    ),
    (
        "haswell",
        &[
            ("C1", 2.0, 2.0, 1.0),
            ("C1E", 10.0, 20.0, 0.8),
            ("C3", 33.0, 100.0, 0.3),
            ("C6", 133.0, 400.0, 0.05),
        ],
    ),
    (
        "skylake",
        &[
            ("C1", 2.0, 2.0, 1.0),
            ("C1E", 10.0, 20.0, 0.8),
            ("C3", 70.0, 100.0, 0.3),
            ("C6", 85.0, 200.0, 0.06),
            ("C7s", 124.0, 800.0, 0.05),
            ("C8", 200.0, 800.0, 0.05),
        ],
    ),
    ("comet-lake-acpi", &[("C1", 1.0, 1.0, 1.0), ("C2", 120.0, 360.0, 0.06), ("C3", 1034.0, 3102.0, 0.05)]),
    ("skylake-server", &[("C1", 2.0, 2.0, 1.0), ("C1E", 10.0, 20.0, 0.8), ("C6", 133.0, 600.0, 0.06)]),
    ("alder-lake", &[("C1E", 2.0, 4.0, 1.0), ("C6", 220.0, 600.0, 0.06), ("C8", 280.0, 800.0, 0.05)]),
    ("zen", &[("C1", 1.0, 2.0, 1.0), ("C2", 400.0, 800.0, 0.06)]),
    ("arm", &[("WFI", 1.0, 1.0, 1.0)]),
];

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
struct Figures {
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
        let wrong = |e: toml::de::Error| SheetError(format!("sheet: {}", e.message().replace('\n', " ")));
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

    fn class(&self) -> &'static Class {
        match self.class {
            ClassWord::Laptop => &LAPTOP,
            ClassWord::Desktop => &DESKTOP,
            ClassWord::Server => &SERVER,
            ClassWord::Board => &BOARD,
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
        let top = all.iter().copied().fold(base, f64::max);
        let steps = ((top - low) / self.step_mhz).floor() as usize;
        all.extend((1..=steps).map(|i| low + i as f64 * self.step_mhz));
        all.sort_by(|a, b| b.total_cmp(a));
        all.dedup_by(|a, b| (*a - *b).abs() < 1.0);
        all
    }

    fn figures(&self, law: &Law, speeds: &[f64]) -> Figures {
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
        Figures {
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
        let class = self.class();
        let nominal = self.figures(&Law::at(class, || 0.5), &speeds);
        let mut text = self.head();
        self.speeds_text(&mut text, &speeds, &nominal);
        self.idle_text(&mut text, &nominal);
        self.rest_text(&mut text, &nominal);
        self.draws_text(&mut text, &speeds, &nominal);
        text
    }

    fn head(&self) -> String {
        let clocks = match self.clocks {
            ClocksWord::Core => "core",
            ClocksWord::Package => "package",
        };
        let source = quoted(&self.source);
        let names = self.cpu_names.iter().map(|n| quoted(n)).collect::<Vec<_>>().join(", ");
        let smt = if self.threads == 1 {
            String::new()
        } else {
            let throughput: Vec<String> = (0..self.threads)
                .map(|t| if t == 0 { "1.0".into() } else { format!("{:.2}", smt(t)) })
                .collect();
            let power: Vec<String> =
                (0..self.threads).map(|t| format!("{:.2}", 1.0 + 0.15 * t as f64)).collect();
            format!(
                "smt_throughput = [{}]\nsmt_power = [{}]\n\
                 sources.smt_throughput = {{ source = \"two threads do 15 to 40 % more than one\", confidence = \"guess\" }}\n\
                 sources.smt_power = {{ source = \"the second thread adds its own switching\", confidence = \"guess\" }}\n",
                throughput.join(", "),
                power.join(", ")
            )
        };
        format!(
            "name = {name}\nsummary = {summary}\ncpu_names = [{names}]\n\n\
             [topology]\npackages = {packages}\nclocks = \"{clocks}\"\nllc = \"package\"\nsource = {source}\nconfidence = \"datasheet\"\n\n\
             [[kind]]\nname = \"core\"\ncores = {cores}\nthreads = {threads}\n{smt}source = {source}\nconfidence = \"datasheet\"\n\n",
            name = quoted(&self.name),
            summary = quoted(&format!("{} from its data sheet; its watts are drawn by class", self.name)),
            packages = self.packages,
            cores = self.cores,
            threads = self.threads,
        )
    }

    fn speeds_text(&self, text: &mut String, speeds: &[f64], nominal: &Figures) {
        _ = write!(
            text,
            "[kind.speeds]\nmhz = {}\nbusy_w = {}\nbase_mhz = {}\n\
             source = \"sheet: the design power's share for common work, voltage by class of machine\"\nconfidence = \"guess\"\n",
            list(speeds),
            list(&nominal.busy_w),
            self.mhz[1]
        );
        for mhz in speeds {
            _ = writeln!(
                text,
                "sources.{mhz} = {{ source = \"as the other speeds; drawn with them\", confidence = \"guess\" }}"
            );
        }
        if !self.boost_mhz.is_empty() {
            _ = write!(
                text,
                "\n[kind.boost]\nmax_mhz = {}\nsource = {}\nconfidence = \"datasheet\"\n",
                list(&self.boost_mhz),
                quoted(&self.source)
            );
        }
        let (delay, overlap) = if self.class == ClassWord::Server { (250, "preempt") } else { (50, "defer") };
        _ = write!(
            text,
            "\n[kind.transition]\ndelay_us = {delay}\nstall_us = 10\noverlap = \"{overlap}\"\n\
             source = \"servers act on a grid of some 500 us, half of it on average\"\nconfidence = \"guess\"\n"
        );
    }

    fn idle_text(&self, text: &mut String, nominal: &Figures) {
        let [high, low] = nominal.halted_w;
        // Firmware tables tell worst cases of far more than the hardware takes.
        let real = if ["comet-lake-acpi", "zen"].contains(&self.idle.as_str()) { FIRMWARE_EXIT } else { 1.0 };
        let states = self.states().iter().enumerate().map(|(i, (name, latency, target, share))| {
            // The halted state keeps the clock's voltage; deeper ones do not. C1E goes to the lowest speed.
            let watts = if i == 0 { high } else { low * share };
            let lowest = if i == 0 { format!(", lowest_watts = {:.5}", low) } else { String::new() };
            let exit = if real < 1.0 && *latency > 10.0 { format!(", exit_us = {}", latency * real) } else { String::new() };
            format!("  {{ name = \"{name}\", latency_us = {latency}, target_us = {target}{exit}, watts = {watts:.5}{lowest} }},\n")
        });
        let polls = self.poll.then(|| {
            let [fast, slow] = nominal.polling_w;
            format!("  {{ name = \"POLL\", latency_us = 0, target_us = 0, watts = {fast:.5}, lowest_watts = {slow:.5} }},\n")
        });
        _ = write!(
            text,
            "\n[kind.idle]\nstates = [\n{}{}]\nsource = \"Linux intel_idle.c or firmware tables, {}\"\nconfidence = \"kernel-table\"\n\
             sources.watts = {{ source = \"shares of a busy core's watts by class\", confidence = \"guess\" }}\n",
            polls.unwrap_or_default(),
            states.collect::<String>(),
            self.idle
        );
        if self.poll {
            text.push_str(
                "sources.\"POLL.watts\" = { source = \"a loop of PAUSE draws 0.3 to 0.6 of common work since Skylake, more before; of what follows it here less\", confidence = \"guess\", range = \"+-100%\" }\n",
            );
        }
    }

    /// The core state in which the whole package may sleep.
    fn deepest(&self) -> Option<&'static str> {
        self.states().iter().find(|s| s.1 >= 80.0).map(|s| s.0)
    }

    fn rest_text(&self, text: &mut String, nominal: &Figures) {
        _ = write!(text, "\n[package]\nuncore_w = {:.5}\n", nominal.uncore_w);
        if let Some(needs) = self.deepest() {
            _ = writeln!(
                text,
                "idle = [{{ name = \"P{needs}\", needs = \"{needs}\", watts = {:.5}, exit_us = 60 }}]",
                nominal.asleep_w
            );
        }
        text.push_str("source = \"shares of the design power by class\"\nconfidence = \"guess\"\n");
        self.uncore_text(text);
        self.limit_text(text);
        let (rest, busy) = self.class().memory;
        let high = if self.steps() { format!("high_w = {}\n", rest * MEMORY_STEP) } else { String::new() };
        _ = write!(
            text,
            "\n[memory]\nwatts = {rest}\nbusy_w = {busy}\n{high}source = \"a usual set of modules of the class\"\nconfidence = \"guess\"\nrange = \"+-50%\"\n\n\
             [platform]\nwatts = {}\nsystem = \"linux\"\ndriver = {}\ndefault_policy = {}\nsource = \"a usual board of the class\"\nconfidence = \"guess\"\n",
            self.class().platform,
            quoted(&self.driver),
            quoted(&self.default_policy)
        );
    }

    /// Whether uncore and memory have a low and a high state.
    fn steps(&self) -> bool {
        self.idle == "skylake-server"
    }

    /// What of the package follows its fastest core: a step on Xeons since Skylake, a ramp on Intel's others.
    fn uncore_text(&self, text: &mut String) {
        let intel = !["zen", "arm"].contains(&self.idle.as_str());
        if self.steps() {
            let [_, base] = self.mhz;
            _ = write!(
                text,
                "\n[uncore]\nstep_w = {:.5}\nstep_mhz = {base}\ndelay_us = 10000\nhold_us = 20000\n\
                 source = \"a Xeon of this generation under six governors (EDChui/GreenLab): a step between 1.4 GHz and its base clock of 2.1\"\nconfidence = \"guess\"\n\
                 sources.step_w = {{ source = \"7 % of that one's design power\", confidence = \"guess\", range = [{:.5}, {:.5}] }}\n\
                 sources.step_mhz = {{ source = \"as there\", confidence = \"guess\", range = [{:.1}, {base}] }}\n",
                0.09 * self.tdp_w,
                0.05 * self.tdp_w,
                0.17 * self.tdp_w,
                base * 0.67,
            );
        } else if intel {
            let share = if self.class == ClassWord::Server { 0.06 } else { 0.04 };
            _ = write!(
                text,
                "\n[uncore]\nfollow_w = {:.5}\nsource = \"the ring follows the cores' clock: a share of the design power\"\nconfidence = \"guess\"\n\
                 range = \"+-60%\"\n",
                share * self.tdp_w
            );
        }
    }

    /// The design power as a limit: a mean over a window on Intel, 1.35 times as much at once on AMD's sockets.
    fn limit_text(&self, text: &mut String) {
        let amd = self.idle == "zen";
        let (long, tau, short) = match (self.class, amd) {
            (ClassWord::Board, _) => return,
            (ClassWord::Desktop, true) => (1.35, 0.0, None),
            (_, true) => (1.0, 0.0, None),
            (ClassWord::Server, false) => (1.0, 1.0, Some(1.2)),
            (ClassWord::Laptop, false) => (1.0, 28.0, Some(1.6)),
            (ClassWord::Desktop, false) => (1.0, 28.0, Some(1.25)),
        };
        _ = write!(text, "\n[power_limit]\nlong_w = {}\ntau_s = {tau}\n", long * self.tdp_w);
        if let Some(short) = short {
            _ = writeln!(text, "short_w = {}", short * self.tdp_w);
        }
        text.push_str("source = \"the design power as firmware usually sets it\"\nconfidence = \"guess\"\nrange = \"+-10%\"\n");
    }

    fn draws_text(&self, text: &mut String, speeds: &[f64], nominal: &Figures) {
        let mut names: Vec<String> =
            speeds.iter().map(|mhz| format!("\"kind.core.speeds.{mhz}.busy_w\"")).collect();
        names.extend(["\"kind.core.idle.watts\"".to_owned(), "\"package.uncore_w\"".to_owned()]);
        if self.deepest().is_some() {
            names.push("\"package.idle.watts\"".to_owned());
        }
        _ = write!(text, "\n[draws]\nfigures = [{}]\nfactors = [\n", names.join(", "));
        let mut random = Random::new(0x5eed);
        for _ in 0..DRAWS {
            let drawn = self.figures(&Law::at(self.class(), || random.unit()), speeds);
            let mut factors: Vec<f64> =
                drawn.busy_w.iter().zip(&nominal.busy_w).map(|(d, n)| d / n).collect();
            factors.push(drawn.halted_w[1] / nominal.halted_w[1]);
            factors.push(drawn.uncore_w / nominal.uncore_w);
            if self.deepest().is_some() {
                factors.push(drawn.asleep_w / nominal.asleep_w);
            }
            _ = writeln!(text, "  {},", list(&factors));
        }
        text.push_str("]\n");
    }
}

/// Throughput of each of `t + 1` threads of a core beside one alone.
fn smt(t: usize) -> f64 {
    if t == 1 { 0.63 } else { 1.26 / (t as f64 + 1.0) }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn list(values: &[f64]) -> String {
    let items: Vec<String> =
        values.iter().map(|v| if v.fract() == 0.0 { format!("{v}") } else { format!("{v:.5}") }).collect();
    format!("[{}]", items.join(", "))
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
