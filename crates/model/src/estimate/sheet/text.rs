//! The machine file that a sheet stands for, table by table.

use super::{ClassWord, ClocksWord, DrawnFigures, Law, Sheet, State};
use crate::machine::EppCeiling;
use std::fmt::Write;
use wattwise_figure::Random;

/// A state of at least this latency lets the package sleep, too.
const DEEP_US: f64 = 80.0;
/// Time to leave a deep state, at most, of the latency that a firmware's table has.
const FIRMWARE_EXIT: f64 = 0.5;
/// The core's own part of the first deep state's latency, which is told for the package as well; the rest is the package's. Deeper
/// ones are deeper of the package alone: what a core can do by itself ends with C6 or C7 (data sheets of Core processors, "core
/// C-states"), and a core leaves that in the same time, whatever was asked for.
const CORE_EXIT: f64 = 0.6;
/// What the memory draws more in its high state, of its watts at rest, and between what it is drawn. In the rows of EDChui/GreenLab a
/// module draws 0.16 W at rest and 0.52 W in the high state at light load; under load the meter reads 5 to 7 W more, of 3.3 to 5.8 without.
const MEMORY_STEP: f64 = 2.25;
const MEMORY_STEPS: [f64; 2] = [1.1, 2.9];
/// Draws in the file: enough for tails of 5 %, few enough for a short file.
const DRAWS: u64 = 96;
/// CPU time of starting a stopped tick again, in us.
const TICK_RESTART_US: f64 = 0.4;

impl Sheet {
    pub(super) fn head(&self) -> String {
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

    pub(super) fn speeds_text(&self, text: &mut String, speeds: &[f64], nominal: &DrawnFigures) {
        _ = write!(
            text,
            "[kind.speeds]\nmhz = {}\nbusy_w = {}\nbase_mhz = {}\n{}\
             source = \"sheet: the design power's share for common work, voltage by class of machine\"\nconfidence = \"guess\"\n",
            list(speeds),
            list(&nominal.busy_w),
            self.mhz[1],
            match self.asked_mhz.is_empty() {
                true => String::new(),
                false => format!("asked_mhz = {}\n", list(&self.asked_mhz)),
            }
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

    pub(super) fn idle_text(&self, text: &mut String, nominal: &DrawnFigures) {
        let [high, low] = nominal.halted_w;
        let first_deep = self.first_deep().map_or(0.0, |s| s.1);
        let states = self.states().iter().enumerate().map(|(i, (name, latency, target, share))| {
            // The halted state keeps the clock's voltage; deeper ones do not. C1E goes to the lowest speed.
            let watts = if i == 0 { high } else { low * share };
            let lowest = if i == 0 { format!(", lowest_watts = {low:.5}") } else { String::new() };
            let exit = if *latency >= DEEP_US {
                format!(", exit_us = {:.3}", first_deep * self.exit_share() * CORE_EXIT)
            } else {
                String::new()
            };
            format!("  {{ name = \"{name}\", latency_us = {latency}, target_us = {target}{exit}, watts = {watts:.5}{lowest} }},\n")
        });
        let polls = self.polls().then(|| {
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
        if self.polls() {
            text.push_str(
                "sources.\"POLL.watts\" = { source = \"a loop of PAUSE was measured at 0.3 to 0.6 of common work; one of the kernel's idle loop at far less\", confidence = \"guess\", range = \"+-85%\" }\n",
            );
        }
    }

    /// Whether the table begins with the kernel's polling state.
    fn polls(&self) -> bool {
        self.poll.unwrap_or(self.idle != "arm")
    }

    /// What the hardware takes, at most, of the latencies in the table: firmware's are worst cases by far.
    fn exit_share(&self) -> f64 {
        if ["comet-lake-acpi", "zen"].contains(&self.idle.as_str()) { FIRMWARE_EXIT } else { 1.0 }
    }

    /// The first state in which the package may sleep as well.
    fn first_deep(&self) -> Option<&'static State> {
        self.states().iter().find(|s| s.1 >= DEEP_US)
    }

    /// The core state in which the whole package may sleep, and how long the package takes to leave it, in us.
    fn deepest(&self) -> Option<(&'static str, f64)> {
        let state = self.first_deep().filter(|_| self.sleeps)?;
        Some((state.0, state.1 * self.exit_share() * (1.0 - CORE_EXIT)))
    }

    pub(super) fn rest_text(&self, text: &mut String, nominal: &DrawnFigures) {
        _ = write!(text, "\n[package]\nuncore_w = {:.5}\n", nominal.uncore_w);
        if let Some((needs, exit_us)) = self.deepest() {
            // Hackenberg et al., "An Energy Efficiency Feature Survey of the Intel Haswell Processor", 2015: no package sleeps while
            // a core of another is active, since its memory may be asked for.
            let every = if self.packages > 1 { ", every_package = true" } else { "" };
            _ = writeln!(
                text,
                "idle = [{{ name = \"P{needs}\", needs = \"{needs}\", watts = {:.5}, exit_us = {exit_us:.3}{every} }}]",
                nominal.asleep_w
            );
        }
        text.push_str("source = \"shares of the design power by class\"\nconfidence = \"guess\"\n");
        self.uncore_text(text);
        self.limit_text(text);
        self.ceiling_text(text);
        let (rest, busy) = self.class().memory;
        let mut spreads = "sources.busy_w = { source = \"what goes over the memory's wires differs by work\", confidence = \"guess\", range = \"+-75%\" }\n".to_owned();
        let mut high = String::new();
        if self.steps() {
            let [low, nominal, top] = [MEMORY_STEPS[0], MEMORY_STEP, MEMORY_STEPS[1]].map(|step| rest * step);
            high = format!("high_w = {nominal}\n");
            _ = writeln!(
                spreads,
                "sources.high_w = {{ source = \"a Xeon of this generation (EDChui/GreenLab): 0.36 W a module that draws 0.16 at rest\", confidence = \"guess\", range = [{low:.5}, {top:.5}] }}"
            );
        }
        _ = write!(
            text,
            "\n[memory]\nwatts = {rest}\nbusy_w = {busy}\n{high}source = \"a usual set of modules of the class\"\nconfidence = \"guess\"\nrange = \"+-50%\"\n{spreads}\n\
             [platform]\nwatts = {}\nsystem = \"linux\"\ndriver = {}\ndefault_policy = {}\nsource = \"a usual board of the class\"\nconfidence = \"guess\"\n\n\
             [tick]\nhz = 250\ntickless = true\ncost_us = 1\nrestart_us = {TICK_RESTART_US}\n\
             source = \"a current Linux distribution\"\nconfidence = \"guess\"\n\
             sources.restart_us = {{ source = \"a look at the timers and a write to the clock device\", confidence = \"guess\", range = \"+-60%\" }}\n",
            self.class().platform,
            quoted(&self.driver),
            quoted(&self.default_policy)
        );
    }

    /// Mobile processors of Intel that choose their own speed do not reach the highest under every preference; which were seen is with the
    /// policy `hwp` and in `machines/alderlake-p-laptop.toml`.
    fn ceiling_text(&self, text: &mut String) {
        if self.class == ClassWord::Laptop
            && ["intel_pstate-hwp", "intel_cpufreq-hwp"].contains(&self.driver.as_str())
        {
            let EppCeiling { from, at_255 } = EppCeiling::MOBILE;
            let [from_range, at_255_range] =
                EppCeiling::MOBILE_RANGES.map(|[low, high]| format!("[{low}, {high}]"));
            let source = EppCeiling::MOBILE_SOURCE;
            _ = write!(
                text,
                "\n[epp_ceiling]\nfrom = {from}\nat_255 = {at_255}\nsource = \"{source}\"\nconfidence = \"guess\"\n\
                 sources.from = {{ source = \"{source}\", confidence = \"guess\", range = {from_range} }}\n\
                 sources.at_255 = {{ source = \"{source}\", confidence = \"guess\", range = {at_255_range} }}\n"
            );
        }
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
                 sources.step_w = {{ source = \"5.8 W there, 4 to 7, of 85 W of design power\", confidence = \"guess\", range = [{:.5}, {:.5}] }}\n\
                 sources.step_mhz = {{ source = \"as there\", confidence = \"guess\", range = [{:.1}, {base}] }}\n",
                0.068 * self.tdp_w,
                0.047 * self.tdp_w,
                0.082 * self.tdp_w,
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

    pub(super) fn draws_text(&self, text: &mut String, speeds: &[f64], nominal: &DrawnFigures) {
        let mut names: Vec<String> =
            speeds.iter().map(|mhz| format!("\"kind.core.speeds.{mhz}.busy_w\"")).collect();
        names.extend(["\"kind.core.idle.watts\"".to_owned(), "\"package.uncore_w\"".to_owned()]);
        if self.deepest().is_some() {
            names.push("\"package.idle.watts\"".to_owned());
        }
        _ = write!(text, "\n[draws]\nfigures = [{}]\nfactors = [\n", names.join(", "));
        let mut random = Random::new(0x5eed);
        for _ in 0..DRAWS {
            let drawn = self.figures(&Law::at(&self.class(), || random.unit()), speeds);
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
