//! What a profile wants, and under which conditions it wants something else.
//!
//! A profile is a base and a list of [`ProfileCase`]s. Those whose conditions all hold are laid over the base in their order: of two
//! wishes for one thing the later counts. So a profile reads from the top: "balanced; on battery balance_power; under 20 %
//! without boost".

use wattwise_figure::one_line;
use wattwise_figure::setting::{Setting, add, words};
use wattwise_hw::states::supply::SupplySource;
use wattwise_policy::chosen::CoresSpec;
use wattwise_policy::{Settings, Speed};

/// How much speed is worth against energy, where the machine's own words for it differ by driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bias {
    /// Speed at any cost.
    Performance,
    /// As the makers mean it.
    Balanced,
    /// Balanced, but rather energy than speed.
    BalancedPower,
    /// Energy first.
    Power,
}

/// A speed policy with its parameters.
#[derive(Clone)]
pub struct SpeedChoice {
    /// The rule.
    pub speed: &'static Speed,
    /// Its parameters.
    pub settings: Settings,
    /// As it was written.
    pub text: String,
}

/// A core policy with its parameters, as it was written.
#[derive(Clone)]
pub struct CoresChoice {
    /// The policy.
    pub spec: CoresSpec,
    /// As it was written.
    pub text: String,
}

/// What is wanted of a machine.
#[derive(Clone, Default)]
pub struct Wish {
    /// Speed against energy, by whatever the driver has.
    pub bias: Option<Bias>,
    /// Settings, as of `wattwise set`.
    pub settings: Vec<Setting>,
    /// A speed policy: the kernel's, or followed here.
    pub speed: Option<SpeedChoice>,
    /// A core policy, followed here.
    pub cores: Option<CoresChoice>,
}

impl std::fmt::Debug for Wish {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_string())
    }
}

impl PartialEq for Wish {
    fn eq(&self, other: &Wish) -> bool {
        let text = |c: &Option<SpeedChoice>| c.as_ref().map(|c| c.text.clone());
        let cores = |c: &Option<CoresChoice>| c.as_ref().map(|c| c.text.clone());
        self.bias == other.bias
            && self.settings == other.settings
            && text(&self.speed) == text(&other.speed)
            && cores(&self.cores) == cores(&other.cores)
    }
}

impl std::fmt::Display for Wish {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.bias.map(|b| format!("bias {}", b.word())));
        parts.extend(self.speed.as_ref().map(|s| format!("speed {}", s.text)));
        parts.extend(self.cores.as_ref().map(|c| format!("cores {}", c.text)));
        let flags = words(&self.settings);
        parts.extend(flags.chunks(2).map(|pair| format!("{} {}", pair[0].trim_start_matches("--"), pair[1])));
        f.write_str(&if parts.is_empty() { "nothing".to_owned() } else { one_line(&parts.join(", ")) })
    }
}

impl Bias {
    /// Its word in files.
    pub fn word(self) -> &'static str {
        match self {
            Bias::Performance => "performance",
            Bias::Balanced => "balanced",
            Bias::BalancedPower => "balanced-power",
            Bias::Power => "power",
        }
    }
}

impl Wish {
    /// The same with another's wishes over it.
    #[must_use]
    pub fn under(mut self, over: &Wish) -> Wish {
        self.bias = over.bias.or(self.bias);
        for setting in &over.settings {
            add(&mut self.settings, setting.clone());
        }
        self.speed = over.speed.clone().or(self.speed);
        self.cores = over.cores.clone().or(self.cores);
        self
    }
}

/// Something that holds or does not.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// What feeds the machine.
    Power(SupplySource),
    /// Charge at most so many percent.
    ChargeBelow(u32),
    /// Charge at least so many percent.
    ChargeAbove(u32),
    /// A program of that name runs.
    Program(String),
    /// The hottest sensor of the CPU shows more, in degrees Celsius.
    HotterThan(f64),
    /// CPUs are busy for more than this share of the time.
    BusierThan(f64),
    /// For less.
    IdlerThan(f64),
    /// Minutes of the day, from and until; over midnight where the second is less.
    Between(u16, u16),
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let time = |m: &u16| format!("{:02}:{:02}", m / 60, m % 60);
        match self {
            Condition::Power(source) => write!(f, "on {source}"),
            Condition::ChargeBelow(p) => write!(f, "charge at most {p} %"),
            Condition::ChargeAbove(p) => write!(f, "charge at least {p} %"),
            Condition::Program(name) => write!(f, "{} runs", one_line(name)),
            Condition::HotterThan(c) => write!(f, "hotter than {c} C"),
            Condition::BusierThan(share) => write!(f, "busier than {} %", share * 100.0),
            Condition::IdlerThan(share) => write!(f, "less busy than {} %", share * 100.0),
            Condition::Between(from, until) => write!(f, "between {} and {}", time(from), time(until)),
        }
    }
}

/// Wishes under conditions, all of which must hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProfileCase {
    /// The conditions.
    pub when: Vec<Condition>,
    /// What is then wanted over what was before.
    pub wish: Wish,
}

/// A profile.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// One line for people.
    pub summary: String,
    /// Which of the three of power-profiles-daemon it is to desktops.
    pub ppd: Ppd,
    /// What is wanted in any case.
    pub base: Wish,
    /// What else, and when.
    pub cases: Vec<ProfileCase>,
}

/// The three profiles that desktops know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ppd {
    /// `performance`.
    Performance,
    /// `balanced`.
    #[default]
    Balanced,
    /// `power-saver`.
    PowerSaver,
}

impl Ppd {
    /// All, in the order that they are listed.
    pub const ALL: [Ppd; 3] = [Ppd::PowerSaver, Ppd::Balanced, Ppd::Performance];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Ppd::Performance => "performance",
            Ppd::Balanced => "balanced",
            Ppd::PowerSaver => "power-saver",
        }
    }
}

/// Whose turn it is while it is proved what a profile saves ([`crate::proving`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// The machine is as it was before the daemon.
    Untouched,
    /// A profile's.
    Profile(String),
}

impl std::fmt::Display for Turn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Turn::Untouched => "untouched",
            Turn::Profile(name) => name,
        })
    }
}
