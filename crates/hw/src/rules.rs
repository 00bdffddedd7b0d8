//! The kernel's rules for attributes that change power states: ONE table.
//!
//! It feeds the validation of what a user asks, `set --dry-run`, the emulator and the docs. A row
//! says what an attribute is, what it takes, and what the kernel refuses with which error and why;
//! its function decides. A decision is pure: it reads the machine through a [`View`] and gives
//! either what the attribute will show afterwards or a [`Refusal`].
//!
//! Where kernels differ, the release in `proc/sys/kernel/osrelease` decides (a tree without it is
//! taken as current). The differences that matter:
//!
//! | since | what changed | file in the kernel |
//! |---|---|---|
//! | 4.2 | `cpuN/cpufreq` is a link to `cpufreq/policyM`, which stays while its CPUs are offline | drivers/cpufreq/cpufreq.c |
//! | 5.3 | limits are requests: a minimum over the maximum is taken and cut, before it was EINVAL | drivers/cpufreq/cpufreq.c, kernel/power/qos.c |
//! | 5.18 | attributes of a policy without online CPU: EBUSY; before, writes gave EINVAL | drivers/cpufreq/cpufreq.c |
//! | 5.18 | limits are rounded to the table's levels | drivers/cpufreq/cpufreq.c |
//! | 6.7 | amd-pstate lists `performance` alone while that is the governor | drivers/cpufreq/amd-pstate.c |
//! | 6.11 | amd-pstate takes `default` as a preference again | drivers/cpufreq/amd-pstate.c |
//! | 7.1 | amd-pstate can own the preferences (`dynamic_epp`) and then takes none | drivers/cpufreq/amd-pstate.c |

use crate::cpus::set::CpuSet;
use crate::root;
use crate::root::Root;
use rustix::io::Errno;
use std::collections::{BTreeSet, HashMap};
use std::sync::OnceLock;

/// What a decision may look at: a machine's attributes, as text.
pub trait View {
    /// An attribute without the white space around it; `None` when it is not there or unreadable.
    fn text(&self, path: &str) -> Option<String>;
    /// The names in a folder; empty when there is none.
    fn list(&self, path: &str) -> Vec<String>;
}

impl View for &dyn Root {
    fn text(&self, path: &str) -> Option<String> {
        root::text(*self, path)
    }
    fn list(&self, path: &str) -> Vec<String> {
        Root::list(*self, path).unwrap_or_default()
    }
}

/// Why the kernel does not take a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// What the write fails with.
    pub errno: Errno,
    /// In words: why, and what to do.
    pub rule: &'static str,
    /// A short name that stays the same.
    pub id: &'static str,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.rule)
    }
}

/// What an attribute shows after a write that the kernel takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The text, without a newline.
    pub shows: String,
    /// Why this is not what was written, when it is not.
    pub note: Option<&'static str>,
}

/// A row of the table.
pub struct Attribute {
    /// Where it is. A `*` after a name stands for a number (`cpu*`, `intel-rapl:*`), a folder `*`
    /// for any one folder.
    pub pattern: &'static str,
    /// Other places of the same attribute.
    pub also: &'static [&'static str],
    /// What it does.
    pub what: &'static str,
    /// The unit of what is written; empty for words.
    pub unit: &'static str,
    /// What it takes, in words.
    pub values: &'static str,
    /// What the kernel refuses.
    pub refusals: &'static [Refusal],
    /// Whether it can only be read; every write is refused.
    pub read_only: bool,
    decide: fn(&Ask) -> Result<Taken, Refusal>,
}

impl Attribute {
    /// Whether this row is about `path`.
    pub fn covers(&self, path: &str) -> bool {
        let path = path.trim_start_matches('/');
        std::iter::once(&self.pattern).chain(self.also).any(|p| matches(p, path))
    }
}

impl std::fmt::Debug for Attribute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attribute").field("pattern", &self.pattern).finish_non_exhaustive()
    }
}

/// The table.
pub fn table() -> &'static [Attribute] {
    TABLE
}

/// The row about a path.
pub fn attribute(path: &str) -> Option<&'static Attribute> {
    let name = path.rsplit('/').next()?;
    let rows = by_name().get(name).map_or(&[][..], Vec::as_slice);
    let numbered = || TABLE.iter().filter(|a| last_name(a.pattern).contains('*'));
    rows.iter().copied().find(|a| a.covers(path)).or_else(|| numbered().find(|a| a.covers(path)))
}

fn last_name(pattern: &'static str) -> &'static str {
    pattern.rsplit('/').next().unwrap_or(pattern)
}

/// Most paths that are asked about are not in the table: their last name tells so at once.
fn by_name() -> &'static HashMap<&'static str, Vec<&'static Attribute>> {
    static INDEX: OnceLock<HashMap<&'static str, Vec<&'static Attribute>>> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut index: HashMap<_, Vec<_>> = HashMap::new();
        for row in TABLE {
            let names: BTreeSet<_> =
                std::iter::once(&row.pattern).chain(row.also).map(|p| last_name(p)).collect();
            names.into_iter().for_each(|name| index.entry(name).or_default().push(row));
        }
        index
    })
}

/// The kernel's refusal of a write to a file with an error: what that error means there, where one rule alone gives it.
pub fn refusal(path: &str, errno: Errno) -> Option<Refusal> {
    let mut fitting = attribute(path)?.refusals.iter().filter(|r| r.errno == errno);
    fitting.next().copied().filter(|_| fitting.next().is_none())
}

/// The tunables that a governor can have, by their files' names.
pub fn tunables(governor: &str) -> impl Iterator<Item = &'static str> {
    let folder = format!("/{governor}/");
    let settable = TABLE.iter().filter(|a| !a.read_only);
    settable.filter_map(move |a| a.pattern.split_once(folder.as_str()).map(|(_, name)| name))
}

/// What the attribute will show when `value` is written, or why the kernel refuses it.
///
/// # Errors
/// The kernel's refusal, with its error number and what to do instead.
pub fn judge(view: &dyn View, path: &str, value: &str) -> Result<String, Refusal> {
    explain(view, path, value).map(|taken| taken.shows)
}

/// As [`judge`], and why the attribute will show something else than what was written.
///
/// # Errors
/// The kernel's refusal, with its error number and what to do instead.
pub fn explain(view: &dyn View, path: &str, value: &str) -> Result<Taken, Refusal> {
    let path = path.trim_start_matches('/');
    let attribute = attribute(path).ok_or(UNKNOWN)?;
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    // Also for an attribute that cannot be read just now: it is its folder that counts.
    if !view.list(folder).iter().any(|n| n == name) {
        return Err(ABSENT);
    }
    if attribute.read_only {
        return Err(READ_ONLY);
    }
    let raw = value.trim_end_matches('\0');
    let ask = Ask { view, folder, name, raw, value: raw.trim_matches(['\n', ' ', '\t']) };
    if name != "online" && path.contains("/cpufreq/") && ask.exists("affected_cpus") {
        // drivers/cpufreq/cpufreq.c, store(): a policy without an online CPU is inactive.
        if ask.here("affected_cpus").is_none_or(|cpus| cpus.is_empty()) {
            return Err(if release(view) >= (5, 18) { INACTIVE } else { INACTIVE_OLD });
        }
    }
    (attribute.decide)(&ask)
}

/// The kernel's release as (major, minor); current kernels when the tree does not say.
pub fn release(view: &dyn View) -> (u32, u32) {
    let text = view.text("proc/sys/kernel/osrelease").unwrap_or_default();
    let mut parts = text.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<u32>());
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
        _ => (u32::MAX, 0),
    }
}

/// Which level a driver takes for a speed that its table does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// The lowest level at or above (CPUFREQ_RELATION_L), else the highest there is.
    AtLeast,
    /// The highest level at or below (CPUFREQ_RELATION_H), else the lowest there is.
    AtMost,
    /// The nearest (CPUFREQ_RELATION_C).
    Closest,
}

/// The speed that a driver sets when `khz` is wanted within `min` and `max`.
///
/// `levels` is empty for drivers without a table; then `step` (0: none) is what they round to.
/// After `cpufreq_frequency_table_target` and `intel_cpufreq_target`.
pub fn resolve(levels: &[u32], step: u32, min: u32, max: u32, khz: u32, relation: Relation) -> u32 {
    let wanted = khz.max(min).min(max);
    let allowed = || levels.iter().copied().filter(|&l| min <= l && l <= max);
    if levels.is_empty() {
        let rounded = match (step, relation) {
            (0, _) => wanted,
            (_, Relation::AtLeast) => wanted.div_ceil(step).saturating_mul(step),
            (_, Relation::AtMost) => wanted / step * step,
            (_, Relation::Closest) => (wanted + step / 2) / step * step,
        };
        return rounded.max(min).min(max);
    }
    let above = allowed().filter(|&l| l >= wanted).min();
    let below = allowed().filter(|&l| l <= wanted).max();
    let found = match relation {
        Relation::AtLeast => above.or(below),
        Relation::AtMost => below.or(above),
        Relation::Closest => match (above, below) {
            (Some(a), Some(b)) if a - wanted < wanted - b => Some(a),
            (Some(_), Some(b)) => Some(b),
            (a, b) => a.or(b),
        },
    };
    // No level within the limits: the nearest outside, first above.
    let above = || levels.iter().copied().filter(|&l| l >= min).min();
    found.or_else(above).or_else(|| levels.iter().copied().max()).unwrap_or(max)
}

/// A policy's limits from what was asked for, as the kernel computes them since 5.3:
/// cut to what the hardware has, the minimum cut to the maximum, and at least one level between.
/// Since 5.18 both are rounded to levels.
pub fn limits(levels: &[u32], hw: (u32, u32), asked: (u32, u32), release: (u32, u32)) -> (u32, u32) {
    let (hw_min, hw_max) = hw;
    let mut max = asked.1.min(hw_max).max(hw_min);
    let mut min = asked.0.max(hw_min).min(max);
    let usable: Vec<u32> = levels.iter().copied().filter(|&l| l <= hw_max).collect();
    let Some(&highest) = usable.iter().max() else { return (min, max) };
    // drivers/cpufreq/freq_table.c: with no level between them, the maximum goes up to the next; in 6.12 down again.
    if !usable.iter().any(|&l| min <= l && l <= max) {
        let above = usable.iter().copied().filter(|&l| l > max).min();
        let below = usable.iter().copied().filter(|&l| l <= max && release >= (6, 12)).max();
        max = below.or(above).unwrap_or(highest);
        min = min.min(max);
    }
    if release >= (5, 18) {
        let (low, high) = (min, max);
        min = resolve(&usable, 0, low, high, low, Relation::AtLeast);
        max = resolve(&usable, 0, min, high, high, Relation::AtMost);
    }
    (min, max)
}

/// Whether the driver decides the speeds itself (`setpolicy`) instead of a governor.
pub fn is_active_driver(driver: &str) -> bool {
    matches!(driver, "intel_pstate" | "amd-pstate-epp" | "amd_pstate_epp" | "longrun")
}

/// What a driver without a table rounds speeds to, in kHz. Intel's ratio is of 100 MHz.
pub fn driver_step(driver: &str) -> u32 {
    if driver.starts_with("intel_") { 100_000 } else { 0 }
}

/// The preferences that the kernel knows by name, with the register's value.
/// drivers/cpufreq/intel_pstate.c and amd-pstate.c, `epp_values`.
pub const PREFERENCES: [(&str, u8); 4] =
    [("performance", 0), ("balance_performance", 0x80), ("balance_power", 0xc0), ("power", 0xff)];

/// The bias's words with the register's value: arch/x86/kernel/cpu/intel_epb.c.
pub const BIASES: [(&str, u8); 5] =
    [("performance", 0), ("balance-performance", 4), ("normal", 6), ("balance-power", 8), ("power", 15)];

/// The unit of RAPL's power limits on almost every processor, uW.
const LIMIT_UNIT_UW: u64 = 125_000;
/// A limit's field has 15 bits.
const LIMIT_UNITS: u64 = 0x7fff;
/// The highest limit that a RAPL register can hold, uW.
pub const HIGHEST_LIMIT_UW: u64 = LIMIT_UNITS * LIMIT_UNIT_UW;

/// Where amd-pstate says that it sets the preferences itself.
pub const DYNAMIC_EPP: &str = "sys/devices/system/cpu/amd_pstate/dynamic_epp";

/// Whether amd-pstate sets the preferences itself and takes none.
pub fn owns_preferences(view: &dyn View) -> bool {
    view.text(DYNAMIC_EPP).is_some_and(|on| matches!(on.as_str(), "enabled" | "1"))
}

/// The preferences that the policy in a folder can have under the governor that it has in this view: what
/// `energy_performance_available_preferences` lists. amd-pstate narrows its list with the governor, so the list that
/// is there need not be the one that will be.
pub fn preferences(view: &dyn View, folder: &str) -> Vec<String> {
    let here = |name: &str| view.text(&format!("{folder}/{name}")).unwrap_or_default();
    let words = |list: &str| list.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
    let listed = words(&here("energy_performance_available_preferences"));
    let narrows = here("scaling_driver").starts_with("amd") && release(view) >= (6, 7);
    if listed.is_empty() || !narrows {
        return listed;
    }
    match (here("scaling_governor") == "performance", listed.as_slice()) {
        (true, _) => words("performance"),
        (false, [only]) if only == "performance" => {
            let default = ["default"].into_iter().filter(|_| release(view) >= (6, 11));
            default.chain(PREFERENCES.iter().map(|p| p.0)).map(str::to_owned).collect()
        }
        (false, _) => listed,
    }
}

/// Whether turbo is off and nobody but the firmware can turn it on: `no_turbo` reads 1 and the processor says that it has
/// no turbo (CPUID's `ida` is the firmware's bit 38 of IA32_MISC_ENABLE), or it has no speed above the nominal.
/// drivers/cpufreq/intel_pstate.c, `turbo_is_disabled` and `store_no_turbo`.
pub fn turbo_is_locked(view: &dyn View) -> bool {
    let number = |name: &str| view.text(&format!("sys/devices/system/cpu/intel_pstate/{name}"));
    if number("no_turbo").as_deref() != Some("1") {
        return false;
    }
    let flags = flags(view);
    number("turbo_pct").as_deref() == Some("0")
        || (!flags.is_empty() && !flags.split_whitespace().any(|f| f == "ida"))
}

/// A RAPL time window as the register can hold it: 2^y * (1 + z/4) units, the largest not above.
/// drivers/powercap/intel_rapl_common.c, `rapl_compute_time_window_core`; unit 976 us.
pub fn time_window_us(us: u64) -> u64 {
    const UNIT_US: u64 = 976;
    let units = us / UNIT_US;
    if units == 0 {
        return UNIT_US;
    }
    let y = units.ilog2().min(31);
    let z = ((units >> y.saturating_sub(2)) & 3).min(3) * u64::from(y >= 2);
    (1_u64 << y) * (4 + z) * UNIT_US / 4
}

struct Ask<'a> {
    view: &'a dyn View,
    folder: &'a str,
    name: &'a str,
    /// As it is written: numbers and switches mind the white space.
    raw: &'a str,
    /// Without the white space around it, for words.
    value: &'a str,
}

impl Ask<'_> {
    fn here(&self, name: &str) -> Option<String> {
        self.view.text(&format!("{}/{name}", self.folder))
    }
    fn exists(&self, name: &str) -> bool {
        self.view.list(self.folder).iter().any(|n| n == name)
    }
    fn number(&self, name: &str) -> Option<u32> {
        self.here(name)?.parse().ok()
    }
    /// `kstrtouint` with base 0: nothing but a number.
    fn whole(&self) -> Result<u32, Refusal> {
        kernel_number(self.raw)?.try_into().map_err(|_| TOO_LARGE)
    }
    /// `sscanf "%u"`: a number with anything after it. What is too large wraps.
    fn leading(&self) -> Result<u32, Refusal> {
        scanned(self.raw, self.release()).map(|n| n as u32)
    }
    /// A tunable of `conservative`, which takes nothing but a number in later kernels.
    fn conservative(&self) -> Result<u32, Refusal> {
        if self.release() >= LATER { self.whole() } else { self.leading() }
    }
    /// `kstrtobool`: decided by the first letters.
    fn switch(&self) -> Result<bool, Refusal> {
        let mut letters = self.raw.chars().map(|c| c.to_ascii_lowercase());
        match (letters.next(), letters.next()) {
            (Some('1' | 'y' | 't'), _) | (Some('o'), Some('n')) => Ok(true),
            (Some('0' | 'n' | 'f'), _) | (Some('o'), Some('f')) => Ok(false),
            (Some('e'), _) if self.release() >= LATER => Ok(true),
            (Some('d'), _) if self.release() >= LATER => Ok(false),
            _ => Err(NOT_A_SWITCH),
        }
    }
    fn as_is(&self, n: impl std::fmt::Display) -> Result<Taken, Refusal> {
        let shows = n.to_string();
        let note = (shows != self.value
            && kernel_number(self.value).map(|n| n.to_string()) != Ok(shows.clone()))
        .then_some("the kernel stores it in this form");
        Ok(Taken { shows, note })
    }
    fn changed(&self, n: impl std::fmt::Display, note: &'static str) -> Result<Taken, Refusal> {
        let shows = n.to_string();
        let note = (shows != self.value).then_some(note);
        Ok(Taken { shows, note })
    }
    /// Numbers between two bounds, EINVAL outside.
    fn within(&self, min: u32, max: u32) -> Result<Taken, Refusal> {
        match self.leading()? {
            n if n < min || n > max => Err(OUT_OF_RANGE),
            n => self.as_is(n),
        }
    }
    /// One of the words of a file beside it.
    fn word_of(&self, choices: &str) -> Option<String> {
        let list = self.here(choices)?;
        list.split_whitespace()
            .map(|w| w.trim_matches(['[', ']']))
            .find(|w| *w == self.value)
            .map(str::to_owned)
    }
    fn release(&self) -> (u32, u32) {
        release(self.view)
    }
}

/// `kstrtoull` with base 0: decimal, 0x hexadecimal or 0 octal, and one newline after it.
fn kernel_number(text: &str) -> Result<u64, Refusal> {
    let plain = text.strip_prefix('+').unwrap_or(text);
    match plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
        Some(digits) => number(digits, 16),
        None if plain.trim_end().len() > 1 && plain.starts_with('0') => number(&plain[1..], 8),
        None => number(plain, 10),
    }
}

/// The same with base 10.
fn decimal(text: &str) -> Result<u64, Refusal> {
    number(text.strip_prefix('+').unwrap_or(text), 10)
}

/// Digits, and one newline after them.
fn number(text: &str, base: u32) -> Result<u64, Refusal> {
    let digits = text.strip_suffix('\n').unwrap_or(text);
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return Err(NOT_A_NUMBER);
    }
    u64::from_str_radix(digits, base).map_err(|_| TOO_LARGE)
}

/// `sscanf "%lu"`: white space, digits, and anything after them. More than 64 bits wrap, in later kernels to the largest number.
fn scanned(text: &str, release: (u32, u32)) -> Result<u64, Refusal> {
    let digits = text.trim_start();
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    if end == 0 {
        return Err(NOT_A_NUMBER);
    }
    let wrapping = |n: u64, d: u8| n.wrapping_mul(10).wrapping_add(u64::from(d - b'0'));
    Ok(match digits[..end].parse() {
        Ok(n) => n,
        Err(_) if release >= LATER => u64::MAX,
        Err(_) => digits[..end].bytes().fold(0, wrapping),
    })
}

fn matches(pattern: &str, path: &str) -> bool {
    // A `*` is a folder's name, and these are none.
    if path.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return false;
    }
    let mut pattern = pattern.split('/');
    let mut path = path.split('/');
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return true,
            (Some(p), Some(s)) if p == "*" || segment(p, s) => {}
            _ => return false,
        }
    }
}

/// One folder's name; a `*` is a number, or numbers with `:` between.
fn segment(pattern: &str, name: &str) -> bool {
    let Some((stem, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(tail) = name.strip_prefix(stem) else { return false };
    let end = tail.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(tail.len());
    end > 0 && segment(rest, &tail[end..])
}

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = $errno:ident, $id:literal, $rule:literal;)*) => {
        $($(#[$doc])* const $name: Refusal = Refusal { errno: Errno::$errno, rule: $rule, id: $id };)*
        /// Every refusal of the table.
        pub const REFUSALS: &[Refusal] = &[$($name),*];
    };
}

refusals! {
    UNKNOWN = ACCESS, "unknown-attribute",
        "this is not an attribute whose rules wattwise knows; nothing is written to it";
    ABSENT = NOENT, "absent",
        "this machine does not have the attribute: its driver, kernel or hardware lacks it, or the CPU is offline";
    READ_ONLY = ACCESS, "read-only",
        "the attribute can only be read; it is chosen at boot or by the firmware";
    INACTIVE = BUSY, "policy-inactive",
        "every CPU of this frequency domain is offline; bring one online first (set --online)";
    INACTIVE_OLD = INVAL, "policy-inactive",
        "every CPU of this frequency domain is offline; bring one online first (set --online)";
    NOT_A_NUMBER = INVAL, "not-a-number",
        "a whole number is expected";
    TOO_LARGE = RANGE, "too-large",
        "the number has more digits than the kernel takes";
    INTERVAL = INVAL, "sampling-rate",
        "two ticks of the kernel at least: 8000 us where it ticks 250 times a second";
    NOT_A_SWITCH = INVAL, "not-a-switch",
        "0 or 1 is expected";
    OUT_OF_RANGE = INVAL, "out-of-range",
        "the number is outside the range that the kernel takes";
    UNKNOWN_GOVERNOR = INVAL, "unknown-governor",
        "the kernel has no such governor; scaling_available_governors lists what it has (a module may need loading)";
    ACTIVE_GOVERNOR = INVAL, "active-driver-governor",
        "this driver chooses speeds itself and knows only performance and powersave; set its status to passive for the others";
    MIN_OVER_MAX = INVAL, "min-over-max",
        "the minimum would be over the maximum; raise the maximum first, or lower the minimum first";
    NOT_USERSPACE = INVAL, "not-userspace",
        "a speed can only be set while the governor is userspace; set that governor first";
    NO_BOOST = INVAL, "boost-off-globally",
        "boost is off for the whole machine; write 1 to cpufreq/boost first";
    EPP_PERFORMANCE = BUSY, "epp-performance-governor",
        "under the performance governor the preference is fixed at performance; set the governor to powersave first";
    EPP_DYNAMIC = BUSY, "epp-dynamic",
        "the kernel itself sets the preference by the power source (amd_pstate/dynamic_epp is enabled) and takes none; write 'disabled' to /sys/devices/system/cpu/amd_pstate/dynamic_epp first";
    GOVERNOR_DYNAMIC = BUSY, "governor-dynamic-epp",
        "while the kernel itself sets the preference (amd_pstate/dynamic_epp is enabled) it does not take the governor performance; write 'disabled' to /sys/devices/system/cpu/amd_pstate/dynamic_epp first";
    DYNAMIC_SAME = INVAL, "dynamic-epp-same",
        "dynamic_epp is what it was asked to become; the kernel refuses that";
    EPP_WORD = INVAL, "epp-unknown",
        "no such preference; energy_performance_available_preferences lists the words, and some drivers take 0 to 255";
    HWP_ON = BUSY, "hwp-stays-on",
        "the hardware keeps choosing speeds (HWP) and would be left without a driver; choose passive instead of off";
    STATUS_WORD = INVAL, "unknown-status",
        "the driver knows no such mode (intel_pstate: active, passive, off; amd_pstate: active, passive, guided, disable)";
    NO_TURBO = PERM, "turbo-disabled",
        "turbo is disabled by the firmware or the processor has none; it can only be enabled in the firmware's setup";
    THRESHOLDS = INVAL, "threshold-order",
        "up_threshold must stay above down_threshold, and both within 1 to 100";
    CPUS = INVAL, "cpus",
        "CPUs are expected: a list such as 0-3,8, or a mask such as 0000010f, as the attribute shows them";
    CPUS_OFFLINE = INVAL, "cpus-offline",
        "none of these CPUs is online";
    BIAS = INVAL, "epb-range",
        "0 (performance) to 15 (power), or performance, balance-performance, normal, balance-power, power";
    UNKNOWN_IDLE_GOVERNOR = INVAL, "unknown-idle-governor",
        "the kernel has no such idle governor; cpuidle/available_governors lists what it has";
    LATENCY = INVAL, "latency-form",
        "a latency in microseconds, 0 for no limit, or n/a for no latency at all (polling)";
    LAST_CPU = BUSY, "last-cpu",
        "the last CPU that can run cannot be taken offline";
    RATIO = INVAL, "uncore-ratio",
        "100000 to 12700000 kHz, in steps of 100000";
    PROFILE_WORD = INVAL, "profile-unknown",
        "no such platform profile; platform_profile_choices lists what the firmware offers";
    PROFILE_UNSUPPORTED = OPNOTSUPP, "profile-unsupported",
        "the firmware does not offer this platform profile; platform_profile_choices lists what it offers";
    UNKNOWN_THERMAL = INVAL, "thermal-policy-unknown",
        "no such thermal governor; available_policies lists what the kernel has";
    THERMAL_MODE = INVAL, "thermal-mode",
        "enabled or disabled is expected";
    SMT_WORD = INVAL, "smt-word",
        "on, off or forceoff is expected";
    SMT_FORCED = PERM, "smt-forced-off",
        "sibling threads were switched off for good (forceoff); only a restart brings them back";
    SMT_NONE = NODEV, "smt-none",
        "the processor has no sibling threads, or the kernel cannot switch them";
}

/// From which release on the two limits are read as nothing but a number. (6.1 does not, 6.12 does.)
const LIMITS_BY_KSTRTOUL: (u32, u32) = (6, 2);
/// From which release on numbers and switches are read as in 7.2. (6.12 does not.)
const LATER: (u32, u32) = (7, 0);

const FREQ: &[Refusal] = &[NOT_A_NUMBER, TOO_LARGE, MIN_OVER_MAX, INACTIVE, INACTIVE_OLD, ABSENT];
const SMALL: &[Refusal] = &[NOT_A_NUMBER, OUT_OF_RANGE, INACTIVE, INACTIVE_OLD, ABSENT];
const SWITCH: &[Refusal] = &[NOT_A_SWITCH, ABSENT];
const NUMBER: &[Refusal] = &[NOT_A_NUMBER, TOO_LARGE, INACTIVE, INACTIVE_OLD, ABSENT];

macro_rules! policy {
    ($name:literal) => {
        concat!("sys/devices/system/cpu/cpufreq/policy*/", $name)
    };
}
macro_rules! old_policy {
    ($name:literal) => {
        &[concat!("sys/devices/system/cpu/cpu*/cpufreq/", $name)]
    };
}
macro_rules! tunable {
    ($name:literal) => {
        concat!("sys/devices/system/cpu/cpufreq/", $name)
    };
}
macro_rules! own_tunable {
    ($name:literal) => {
        &[
            concat!("sys/devices/system/cpu/cpufreq/policy*/", $name),
            concat!("sys/devices/system/cpu/cpu*/cpufreq/", $name),
        ]
    };
}
macro_rules! zone {
    ($name:literal) => {
        concat!("sys/class/powercap/*/", $name)
    };
}
macro_rules! zone_device {
    ($name:literal) => {
        &[
            concat!("sys/devices/virtual/powercap/*/*/", $name),
            concat!("sys/devices/virtual/powercap/*/*/*/", $name),
        ]
    };
}
macro_rules! thermal {
    ($name:literal) => {
        &[concat!("sys/devices/virtual/thermal/", $name)]
    };
}

/// In the order of the docs.
static TABLE: &[Attribute] = &[
    Attribute {
        pattern: policy!("scaling_governor"),
        also: old_policy!("scaling_governor"),
        what: "the speed policy of a frequency domain",
        unit: "",
        values: "a word of scaling_available_governors; drivers that choose speeds themselves take performance and powersave",
        refusals: &[UNKNOWN_GOVERNOR, ACTIVE_GOVERNOR, GOVERNOR_DYNAMIC, INACTIVE, INACTIVE_OLD, ABSENT],
        read_only: false,
        decide: governor,
    },
    Attribute {
        pattern: policy!("scaling_min_freq"),
        also: old_policy!("scaling_min_freq"),
        what: "the lowest speed that may be chosen",
        unit: "kHz",
        values: "any number; cut to the hardware's limits and to the maximum, rounded up to a level. Before Linux 5.3 more than the maximum is refused",
        refusals: FREQ,
        read_only: false,
        decide: frequency_limit,
    },
    Attribute {
        pattern: policy!("scaling_max_freq"),
        also: old_policy!("scaling_max_freq"),
        what: "the highest speed that may be chosen",
        unit: "kHz",
        values: "any number; cut to the hardware's limits, rounded down to a level; the minimum gives way. Before Linux 5.3 less than the minimum is refused",
        refusals: FREQ,
        read_only: false,
        decide: frequency_limit,
    },
    Attribute {
        pattern: policy!("scaling_setspeed"),
        also: old_policy!("scaling_setspeed"),
        what: "the speed itself, while the governor is userspace",
        unit: "kHz",
        values: "any number; cut to the limits, then the lowest level at or above it. Reads <unsupported> under other governors",
        refusals: &[NOT_USERSPACE, NOT_A_NUMBER, TOO_LARGE, INACTIVE, INACTIVE_OLD, ABSENT],
        read_only: false,
        decide: setspeed,
    },
    Attribute {
        pattern: policy!("energy_performance_preference"),
        also: old_policy!("energy_performance_preference"),
        what: "what the hardware's own speed choice leans to",
        unit: "",
        values: "a word of energy_performance_available_preferences; intel_pstate also takes 0 (performance) to 255 (power)",
        refusals: &[EPP_PERFORMANCE, EPP_DYNAMIC, EPP_WORD, INACTIVE, INACTIVE_OLD, ABSENT],
        read_only: false,
        decide: preference,
    },
    Attribute {
        pattern: policy!("boost"),
        also: old_policy!("boost"),
        what: "speeds over the nominal one, for one frequency domain (Linux 6.11)",
        unit: "",
        values: "0 or 1",
        refusals: &[NOT_A_SWITCH, NO_BOOST, INACTIVE, INACTIVE_OLD, ABSENT],
        read_only: false,
        decide: |ask| {
            let on = ask.switch()?;
            // drivers/cpufreq/cpufreq.c, store_local_boost
            if ask.view.text("sys/devices/system/cpu/cpufreq/boost").is_some_and(|b| b == "0") {
                return Err(NO_BOOST);
            }
            ask.as_is(u8::from(on))
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/cpufreq/boost",
        also: &[],
        what: "speeds over the nominal one, for the whole machine; off lowers the hardware's and the set maxima",
        unit: "",
        values: "0 or 1",
        refusals: SWITCH,
        read_only: false,
        decide: |ask| ask.as_is(u8::from(ask.switch()?)),
    },
    Attribute {
        pattern: "sys/devices/system/cpu/intel_pstate/status",
        also: &[],
        what: "who chooses the speeds: the driver (active), a governor (passive), nobody (off)",
        unit: "",
        values: "active, passive or off",
        refusals: &[STATUS_WORD, HWP_ON, ABSENT],
        read_only: false,
        decide: |ask| match ask.value {
            // drivers/cpufreq/intel_pstate.c, intel_pstate_update_status
            "off" if has_flag(ask.view, "hwp") => Err(HWP_ON),
            "off" if ask.here("status").is_some_and(|s| s == "off") => Err(STATUS_WORD),
            "active" | "passive" | "off" => ask.as_is(ask.value),
            _ => Err(STATUS_WORD),
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/intel_pstate/no_turbo",
        also: &[],
        what: "1 keeps the whole machine out of turbo",
        unit: "",
        values: "0 or 1",
        refusals: &[NOT_A_NUMBER, NO_TURBO, ABSENT],
        read_only: false,
        decide: |ask| {
            let on = ask.leading()?.min(1);
            if turbo_is_locked(ask.view) {
                return Err(NO_TURBO);
            }
            ask.as_is(on)
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/intel_pstate/max_perf_pct",
        also: &[],
        what: "the highest speed of the whole machine, as a share of the highest turbo speed",
        unit: "%",
        values: "0 to 100, cut to at least min_perf_pct",
        refusals: &[NOT_A_NUMBER, TOO_LARGE, ABSENT],
        read_only: false,
        decide: |ask| {
            let low = ask.number("min_perf_pct").unwrap_or(0).min(100);
            ask.changed(ask.leading()?.clamp(low, 100), "cut to min_perf_pct and 100")
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/intel_pstate/min_perf_pct",
        also: &[],
        what: "the lowest speed of the whole machine, as a share of the highest turbo speed",
        unit: "%",
        values: "0 to 100, cut to what the hardware's lowest speed is and to max_perf_pct",
        refusals: &[NOT_A_NUMBER, TOO_LARGE, ABSENT],
        read_only: false,
        decide: |ask| {
            let high = ask.number("max_perf_pct").unwrap_or(100).min(100);
            let cpu0 = |name: &str| {
                let text = ask.view.text(&format!("sys/devices/system/cpu/cpu0/cpufreq/{name}"))?;
                text.parse::<u64>().ok()
            };
            let low = match (cpu0("cpuinfo_min_freq"), cpu0("cpuinfo_max_freq")) {
                (Some(min), Some(max)) if max > 0 => (100 * min / max) as u32,
                _ => 0,
            };
            let cut = ask.leading()?.clamp(low.min(high), high);
            ask.changed(cut, "cut to the hardware's lowest speed and max_perf_pct")
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/intel_pstate/hwp_dynamic_boost",
        also: &[],
        what: "whether the hardware's minimum is raised for a moment after waiting for I/O",
        unit: "",
        values: "0 or 1",
        refusals: &[NOT_A_NUMBER, TOO_LARGE, ABSENT],
        read_only: false,
        decide: |ask| ask.as_is(ask.whole()?.min(1)),
    },
    Attribute {
        pattern: "sys/devices/system/cpu/amd_pstate/status",
        also: &[],
        what: "who chooses the speeds: the hardware (active), a governor (passive), both (guided), nobody (disable)",
        unit: "",
        values: "active, passive, guided or disable",
        refusals: &[STATUS_WORD, ABSENT],
        read_only: false,
        decide: |ask| match ask.value {
            // drivers/cpufreq/amd-pstate.c, amd_pstate_update_status
            "active" | "passive" | "guided" | "disable" => ask.as_is(ask.value),
            _ => Err(STATUS_WORD),
        },
    },
    Attribute {
        pattern: DYNAMIC_EPP,
        also: &[],
        what: "whether the kernel itself sets the preferences by the power source (Linux 7.1 and 7.2)",
        unit: "",
        values: "enabled or disabled, or 0 or 1; not what it is already",
        refusals: &[NOT_A_SWITCH, DYNAMIC_SAME, ABSENT],
        read_only: false,
        decide: |ask| match (ask.switch()?, ask.here(ask.name).as_deref()) {
            (true, Some("enabled")) | (false, Some("disabled")) => Err(DYNAMIC_SAME),
            (on, _) => ask.as_is(if on { "enabled" } else { "disabled" }),
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/amd_pstate/prefcore",
        also: &[],
        what: "whether the scheduler knows the better cores",
        unit: "",
        values: "enabled or disabled, at boot (amd_prefcore=)",
        refusals: &[READ_ONLY, ABSENT],
        read_only: true,
        decide: |_| Err(READ_ONLY),
    },
    Attribute {
        pattern: tunable!("ondemand/up_threshold"),
        also: own_tunable!("ondemand/up_threshold"),
        what: "load over which ondemand goes to the highest speed",
        unit: "%",
        values: "1 to 100 (11 to 100 before Linux 3.11)",
        refusals: SMALL,
        read_only: false,
        decide: |ask| ask.within(if ask.release() < (3, 11) { 11 } else { 1 }, 100),
    },
    Attribute {
        pattern: tunable!("ondemand/sampling_rate"),
        also: own_tunable!("ondemand/sampling_rate"),
        what: "how often ondemand looks at the load",
        unit: "us",
        values: "any number from two ticks of the kernel on; not below sampling_rate_min where that exists",
        refusals: &[NOT_A_NUMBER, INTERVAL, INACTIVE, INACTIVE_OLD, ABSENT],
        read_only: false,
        decide: sampling_rate,
    },
    Attribute {
        pattern: tunable!("ondemand/sampling_down_factor"),
        also: own_tunable!("ondemand/sampling_down_factor"),
        what: "how many times longer ondemand stays at the highest speed",
        unit: "",
        values: "1 to 100000",
        refusals: SMALL,
        read_only: false,
        decide: |ask| ask.within(1, 100_000),
    },
    Attribute {
        pattern: tunable!("ondemand/powersave_bias"),
        also: own_tunable!("ondemand/powersave_bias"),
        what: "by how much ondemand aims below the speed it found",
        unit: "per mille",
        values: "0 to 1000, larger numbers are cut",
        refusals: NUMBER,
        read_only: false,
        decide: |ask| ask.changed(ask.leading()?.min(1000), "cut to 1000"),
    },
    Attribute {
        pattern: tunable!("ondemand/ignore_nice_load"),
        also: own_tunable!("ondemand/ignore_nice_load"),
        what: "whether nice processes count as no load",
        unit: "",
        values: "0 or 1",
        refusals: NUMBER,
        read_only: false,
        decide: |ask| ask.as_is(ask.leading()?.min(1)),
    },
    Attribute {
        pattern: tunable!("ondemand/io_is_busy"),
        also: own_tunable!("ondemand/io_is_busy"),
        what: "whether waiting for I/O counts as load",
        unit: "",
        values: "0 or 1",
        refusals: NUMBER,
        read_only: false,
        decide: |ask| ask.as_is(ask.leading()?.min(1)),
    },
    Attribute {
        pattern: tunable!("conservative/up_threshold"),
        also: own_tunable!("conservative/up_threshold"),
        what: "load over which conservative goes one step up",
        unit: "%",
        values: "over down_threshold, at most 100",
        refusals: &[NOT_A_NUMBER, THRESHOLDS, INACTIVE, INACTIVE_OLD, ABSENT],
        read_only: false,
        decide: |ask| match ask.conservative().map_err(|_| THRESHOLDS)? {
            // drivers/cpufreq/cpufreq_conservative.c, up_threshold_store
            n if n > 100 || n <= ask.number("down_threshold").unwrap_or(0) => Err(THRESHOLDS),
            n => ask.as_is(n),
        },
    },
    Attribute {
        pattern: tunable!("conservative/down_threshold"),
        also: own_tunable!("conservative/down_threshold"),
        what: "load under which conservative goes one step down",
        unit: "%",
        values: "1 to 99, under up_threshold",
        refusals: &[NOT_A_NUMBER, THRESHOLDS, INACTIVE, INACTIVE_OLD, ABSENT],
        read_only: false,
        decide: |ask| match ask.conservative().map_err(|_| THRESHOLDS)? {
            n if n == 0 || n >= ask.number("up_threshold").unwrap_or(101) || n > 100 => Err(THRESHOLDS),
            n => ask.as_is(n),
        },
    },
    Attribute {
        pattern: tunable!("conservative/freq_step"),
        also: own_tunable!("conservative/freq_step"),
        what: "how large conservative's steps are, as a share of the highest speed",
        unit: "%",
        values: "0 to 100, larger numbers are cut; 0 never moves",
        refusals: NUMBER,
        read_only: false,
        decide: |ask| ask.changed(ask.conservative()?.min(100), "cut to 100"),
    },
    Attribute {
        pattern: tunable!("conservative/sampling_down_factor"),
        also: own_tunable!("conservative/sampling_down_factor"),
        what: "on every how many samples conservative may go down",
        unit: "",
        values: "1 to 10",
        refusals: SMALL,
        read_only: false,
        decide: |ask| match ask.conservative().map_err(|_| OUT_OF_RANGE)? {
            n @ 1..=10 => ask.as_is(n),
            _ => Err(OUT_OF_RANGE),
        },
    },
    Attribute {
        pattern: tunable!("conservative/sampling_rate"),
        also: own_tunable!("conservative/sampling_rate"),
        what: "how often conservative looks at the load",
        unit: "us",
        values: "any number from two ticks of the kernel on; not below sampling_rate_min where that exists",
        refusals: &[NOT_A_NUMBER, INTERVAL, INACTIVE, INACTIVE_OLD, ABSENT],
        read_only: false,
        decide: sampling_rate,
    },
    Attribute {
        pattern: tunable!("conservative/ignore_nice_load"),
        also: own_tunable!("conservative/ignore_nice_load"),
        what: "whether nice processes count as no load",
        unit: "",
        values: "0 or 1",
        refusals: NUMBER,
        read_only: false,
        decide: |ask| ask.as_is(ask.conservative()?.min(1)),
    },
    Attribute {
        pattern: tunable!("schedutil/rate_limit_us"),
        also: own_tunable!("schedutil/rate_limit_us"),
        what: "the shortest time between two changes of speed under schedutil",
        unit: "us",
        values: "any number",
        refusals: NUMBER,
        read_only: false,
        // kernel/sched/cpufreq_schedutil.c, rate_limit_us_store: base 10, and one error for all.
        decide: |ask| match decimal(ask.raw) {
            Ok(n) if n <= u64::from(u32::MAX) => ask.as_is(n),
            _ => Err(NOT_A_NUMBER),
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/cpu*/power/energy_perf_bias",
        also: &[],
        what: "what an Intel core leans to where it decides for itself (EPB)",
        unit: "",
        values: "0 (performance) to 15 (power), or performance, balance-performance, normal, balance-power, power",
        refusals: &[BIAS, ABSENT],
        read_only: false,
        decide: |ask| match BIASES.iter().find(|b| b.0 == ask.value) {
            Some(word) => ask.as_is(word.1),
            None => match kernel_number(ask.value) {
                Ok(n) if n <= 15 => ask.as_is(n),
                _ => Err(BIAS),
            },
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us",
        also: &[],
        what: "the longest wake-up time that idle states of this CPU may have",
        unit: "us",
        values: "a number; 0 for no limit; n/a for no latency at all",
        refusals: &[LATENCY, ABSENT],
        read_only: false,
        decide: |ask| match kernel_number(ask.raw) {
            // drivers/base/power/sysfs.c; the largest number means "no limit" inside and is refused.
            Ok(n) if n < i32::MAX as u64 => ask.as_is(n),
            Err(_) if ask.value == "n/a" => ask.as_is("n/a"),
            _ => Err(LATENCY),
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
        also: &[],
        what: "1 keeps the CPU out of an idle state",
        unit: "",
        values: "0 or 1 (any other number counts as 1)",
        refusals: &[NOT_A_NUMBER, TOO_LARGE, ABSENT],
        read_only: false,
        decide: |ask| ask.as_is(ask.whole()?.min(1)),
    },
    Attribute {
        pattern: "sys/devices/system/cpu/cpuidle/current_governor",
        also: &[],
        what: "the policy that chooses idle states",
        unit: "",
        values: "a word of cpuidle/available_governors",
        refusals: &[UNKNOWN_IDLE_GOVERNOR, ABSENT],
        read_only: false,
        decide: |ask| match ask.word_of("available_governors") {
            Some(word) => ask.as_is(word),
            None => Err(UNKNOWN_IDLE_GOVERNOR),
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/cpu*/online",
        also: &[],
        what: "whether the CPU runs at all; the boot CPU mostly has no such file",
        unit: "",
        values: "0 or 1",
        refusals: &[NOT_A_SWITCH, LAST_CPU, ABSENT],
        read_only: false,
        decide: |ask| {
            let on = ask.switch()?;
            // kernel/cpu.c, _cpu_down: num_online_cpus() == 1
            let online = ask.view.text("sys/devices/system/cpu/online").unwrap_or_default();
            let alone = !online.contains([',', '-']);
            if !on && alone && ask.here(ask.name).is_some_and(|now| now == "1") {
                return Err(LAST_CPU);
            }
            ask.as_is(u8::from(on))
        },
    },
    Attribute {
        pattern: "sys/devices/system/cpu/smt/control",
        also: &[],
        what: "whether sibling threads run; off takes all but one of each core offline",
        unit: "",
        values: "on, off, or forceoff (until the next boot)",
        refusals: &[SMT_WORD, SMT_FORCED, SMT_NONE, ABSENT],
        read_only: false,
        decide: |ask| {
            // kernel/cpu.c, __store_smt_control
            if !["on", "off", "forceoff"].contains(&ask.value) {
                return Err(SMT_WORD);
            }
            match ask.here("control").unwrap_or_default().as_str() {
                "forceoff" => Err(SMT_FORCED),
                "notsupported" | "notimplemented" => Err(SMT_NONE),
                _ => ask.as_is(ask.value),
            }
        },
    },
    Attribute {
        pattern: zone!("constraint_*_power_limit_uw"),
        also: zone_device!("constraint_*_power_limit_uw"),
        what: "a limit of a RAPL domain's mean power; the firmware may have locked it (EACCES)",
        unit: "uW",
        values: "any number, rounded down to the register's unit of 125000; not bounded by max_power_uw. What has more than the register's 15 bits loses the upper ones",
        refusals: &[NOT_A_NUMBER, TOO_LARGE, ABSENT],
        read_only: false,
        decide: |ask| {
            // drivers/powercap/intel_rapl_common.c, rapl_write_data_raw: shifted, then masked.
            let units = kernel_number(ask.value)? / LIMIT_UNIT_UW;
            let note = match units > LIMIT_UNITS {
                true => "more than the register holds: its upper bits are lost",
                false => "rounded down to the register's unit, 1/8 W",
            };
            ask.changed((units & LIMIT_UNITS) * LIMIT_UNIT_UW, note)
        },
    },
    Attribute {
        pattern: zone!("constraint_*_time_window_us"),
        also: zone_device!("constraint_*_time_window_us"),
        what: "the time over which a RAPL limit is averaged",
        unit: "us",
        values: "any number, rounded down to what the register can say: 976 us times 2^y * (1 + z/4)",
        refusals: &[NOT_A_NUMBER, TOO_LARGE, ABSENT],
        read_only: false,
        decide: |ask| {
            let us = kernel_number(ask.value)?;
            ask.changed(time_window_us(us), "rounded down to what the register can say")
        },
    },
    Attribute {
        pattern: zone!("enabled"),
        also: zone_device!("enabled"),
        what: "whether a RAPL domain's limits apply",
        unit: "",
        values: "0 or 1",
        refusals: SWITCH,
        read_only: false,
        decide: |ask| ask.as_is(u8::from(ask.switch()?)),
    },
    Attribute {
        pattern: "sys/devices/system/cpu/intel_uncore_frequency/*/min_freq_khz",
        also: &[],
        what: "the lowest speed of a package's uncore",
        unit: "kHz",
        values: "100000 to 12700000, rounded down to 100000",
        refusals: &[RATIO, ABSENT],
        read_only: false,
        decide: uncore,
    },
    Attribute {
        pattern: "sys/devices/system/cpu/intel_uncore_frequency/*/max_freq_khz",
        also: &[],
        what: "the highest speed of a package's uncore",
        unit: "kHz",
        values: "100000 to 12700000, rounded down to 100000",
        refusals: &[RATIO, ABSENT],
        read_only: false,
        decide: uncore,
    },
    Attribute {
        pattern: "sys/firmware/acpi/platform_profile",
        also: &[],
        what: "the firmware's own choice between power and performance",
        unit: "",
        values: "a word of platform_profile_choices",
        refusals: &[PROFILE_WORD, PROFILE_UNSUPPORTED, ABSENT],
        read_only: false,
        decide: |ask| {
            // drivers/acpi/platform_profile.c, profile_names
            const KNOWN: [&str; 8] = [
                "low-power",
                "cool",
                "quiet",
                "balanced",
                "balanced-performance",
                "performance",
                "max-power",
                "custom",
            ];
            match ask.word_of("platform_profile_choices") {
                Some(word) => ask.as_is(word),
                None if KNOWN.contains(&ask.value) => Err(PROFILE_UNSUPPORTED),
                None => Err(PROFILE_WORD),
            }
        },
    },
    Attribute {
        pattern: "sys/class/thermal/thermal_zone*/policy",
        also: thermal!("thermal_zone*/policy"),
        what: "what the kernel does when a zone gets hot",
        unit: "",
        values: "a word of available_policies",
        refusals: &[UNKNOWN_THERMAL, ABSENT],
        read_only: false,
        decide: |ask| match ask.word_of("available_policies") {
            Some(word) => ask.as_is(word),
            // drivers/thermal/thermal_core.c, __find_governor: no name is the kernel's default, mostly this one.
            None if ask.value.is_empty() => ask.changed("step_wise", "the kernel's default"),
            None => Err(UNKNOWN_THERMAL),
        },
    },
    Attribute {
        pattern: "sys/class/thermal/thermal_zone*/mode",
        also: thermal!("thermal_zone*/mode"),
        what: "whether the kernel acts on a zone's temperature",
        unit: "",
        values: "enabled or disabled",
        refusals: &[THERMAL_MODE, ABSENT],
        read_only: false,
        decide: |ask| match ask.value {
            "enabled" | "disabled" => ask.as_is(ask.value),
            _ => Err(THERMAL_MODE),
        },
    },
    Attribute {
        pattern: "sys/class/thermal/cooling_device*/cur_state",
        also: thermal!("cooling_device*/cur_state"),
        what: "how far a cooling device (fan, throttle) is turned up",
        unit: "",
        values: "0 to max_state",
        refusals: &[NOT_A_NUMBER, OUT_OF_RANGE, TOO_LARGE, ABSENT],
        read_only: false,
        // drivers/thermal/thermal_sysfs.c, cur_state_store: sscanf "%ld" in 6.12, kstrtol with base 10 in 7.2.
        decide: |ask| match if ask.release() >= LATER {
            decimal(ask.raw)
        } else {
            scanned(ask.raw, ask.release())
        }? {
            n if ask.release() >= LATER && n > i64::MAX as u64 => Err(TOO_LARGE),
            n if n > u64::from(ask.number("max_state").unwrap_or(0)) => Err(OUT_OF_RANGE),
            n => ask.as_is(n),
        },
    },
    Attribute {
        pattern: "proc/irq/*/smp_affinity_list",
        also: &[],
        what: "which CPUs may serve an interrupt",
        unit: "",
        values: "a list of CPUs, one of them online",
        refusals: &[CPUS, CPUS_OFFLINE, ABSENT],
        read_only: false,
        decide: |ask| cpus(ask, CpuSet::parse(ask.value).ok()),
    },
    Attribute {
        pattern: "proc/irq/default_smp_affinity",
        also: &["sys/devices/virtual/workqueue/cpumask"],
        what: "which CPUs serve interrupts to come, or kernel work that is bound to none",
        unit: "",
        values: "a mask of CPUs in hexadecimal, words of 32 bits with commas between, one of them online",
        refusals: &[CPUS, CPUS_OFFLINE, ABSENT],
        read_only: false,
        decide: |ask| cpus(ask, CpuSet::parse_mask(ask.value)),
    },
];

/// CPUs as an interrupt's affinity: kernel/irq/proc.c, `write_irq_affinity`.
fn cpus(ask: &Ask, cpus: Option<CpuSet>) -> Result<Taken, Refusal> {
    let cpus = cpus.ok_or(CPUS)?;
    let online = ask.view.text("sys/devices/system/cpu/online");
    match online.and_then(|list| CpuSet::parse(&list).ok()) {
        Some(online) if !cpus.iter().any(|cpu| online.contains(cpu)) => Err(CPUS_OFFLINE),
        _ => ask.as_is(ask.value),
    }
}

fn governor(ask: &Ask) -> Result<Taken, Refusal> {
    // drivers/cpufreq/cpufreq.c, store_scaling_governor: sscanf "%15s", then strncasecmp.
    let word: String = ask.value.split_whitespace().next().unwrap_or("").chars().take(15).collect();
    let word = word.to_ascii_lowercase();
    let driver = ask.here("scaling_driver").unwrap_or_default();
    if is_active_driver(&driver) {
        return match word.as_str() {
            // amd_pstate_epp_set_policy
            "performance" if owns_preferences(ask.view) && driver.starts_with("amd") => Err(GOVERNOR_DYNAMIC),
            "performance" | "powersave" => ask.as_is(word),
            _ => Err(ACTIVE_GOVERNOR),
        };
    }
    let available = ask.here("scaling_available_governors").unwrap_or_default();
    if word.is_empty() || !available.split_whitespace().any(|g| g == word) {
        return Err(UNKNOWN_GOVERNOR);
    }
    ask.as_is(word)
}

/// The levels of the policy in a folder, with those of boost while it is on.
pub fn levels(view: &dyn View, folder: &str) -> Vec<u32> {
    let numbers = |name: &str| -> Vec<u32> {
        let text = view.text(&format!("{folder}/{name}")).unwrap_or_default();
        text.split_whitespace().filter_map(|n| n.parse().ok()).collect()
    };
    let mut levels = numbers("scaling_available_frequencies");
    if !levels.is_empty() {
        levels.extend(numbers("scaling_boost_frequencies"));
        levels.sort_unstable();
        levels.dedup();
    }
    levels
}

/// Which of a policy's two limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// `scaling_min_freq`.
    Min,
    /// `scaling_max_freq`.
    Max,
}

/// A limit as a write gives it.
///
/// # Errors
/// It is no number that the kernel takes.
pub fn limit_khz(value: &str, limit: Limit, release: (u32, u32)) -> Result<u32, Refusal> {
    let n = if release >= LIMITS_BY_KSTRTOUL { kernel_number(value)? } else { scanned(value, release)? };
    // Requests are signed inside (kernel/power/qos.c, freq_qos_value_invalid): -1 takes the request back.
    match (n as i32, limit) {
        (-1, Limit::Min) => Ok(0),
        (-1, Limit::Max) => Ok(i32::MAX as u32),
        (n, _) => n.try_into().map_err(|_| NOT_A_NUMBER),
    }
}

fn frequency_limit(ask: &Ask) -> Result<Taken, Refusal> {
    let release = ask.release();
    let limit = if ask.name == "scaling_min_freq" { Limit::Min } else { Limit::Max };
    let is_min = limit == Limit::Min;
    let asked = limit_khz(ask.raw, limit, release)?;
    let number = |name, or| ask.number(name).unwrap_or(or);
    let (min, max) = (number("scaling_min_freq", 0), number("scaling_max_freq", u32::MAX));
    // drivers/cpufreq/cpufreq.c up to 5.2, cpufreq_set_policy: compared before anything is cut.
    if release < (5, 3) && if is_min { asked > max } else { asked < min } {
        return Err(MIN_OVER_MAX);
    }
    let wanted = if is_min { (asked, max) } else { (min, asked) };
    let hw = (number("cpuinfo_min_freq", 0), number("cpuinfo_max_freq", u32::MAX));
    let (new_min, new_max) = limits(&levels(ask.view, ask.folder), hw, wanted, release);
    let note = match () {
        () if is_min && asked > max => "the minimum cannot be over the maximum: cut to it",
        () if asked < hw.0 || asked > hw.1 => "cut to what the hardware has",
        () => "rounded to a level of the driver's table",
    };
    ask.changed(if is_min { new_min } else { new_max }, note)
}

fn setspeed(ask: &Ask) -> Result<Taken, Refusal> {
    if ask.here("scaling_governor").is_none_or(|g| g != "userspace") {
        return Err(NOT_USERSPACE);
    }
    // drivers/cpufreq/cpufreq_userspace.c shows the speed that there is, in later kernels the one that was asked for.
    if ask.release() >= LATER {
        return ask.as_is(ask.whole()?);
    }
    let khz = ask.leading()?;
    let levels = levels(ask.view, ask.folder);
    let min = ask.number("scaling_min_freq").unwrap_or(0);
    let max = ask.number("scaling_max_freq").unwrap_or(u32::MAX);
    let step = driver_step(&ask.here("scaling_driver").unwrap_or_default());
    let set = resolve(&levels, step, min, max, khz, Relation::AtLeast);
    ask.changed(
        set,
        if khz < min || khz > max { "cut to the limits" } else { "the next level of the driver's table" },
    )
}

fn preference(ask: &Ask) -> Result<Taken, Refusal> {
    // drivers/cpufreq/intel_pstate.c and amd-pstate.c, store_energy_performance_preference
    let word = ask.value.split_whitespace().next().unwrap_or("");
    let driver = ask.here("scaling_driver").unwrap_or_default();
    let raw = kernel_number(word).ok().filter(|n| *n <= 255 && driver.starts_with("intel_"));
    let named = PREFERENCES.iter().find(|p| p.0 == word);
    let default = word == "default" && (driver.starts_with("intel_") || ask.release() >= (6, 11));
    if driver.starts_with("amd") && owns_preferences(ask.view) {
        return Err(EPP_DYNAMIC);
    }
    // A preference of its own, in place of dynamic_epp since 7.3.
    if word == "dynamic" && ask.word_of("energy_performance_available_preferences").is_some() {
        return ask.as_is(word);
    }
    if named.is_none() && raw.is_none() && !default {
        return Err(EPP_WORD);
    }
    let performance =
        is_active_driver(&driver) && ask.here("scaling_governor").is_some_and(|g| g == "performance");
    let value = named.map(|p| u64::from(p.1)).or(raw);
    if performance && value != Some(0) {
        return Err(EPP_PERFORMANCE);
    }
    match value {
        // Since boot the firmware's own value, which is balance_performance almost everywhere.
        None => ask.changed("balance_performance", "the firmware's default"),
        Some(n) => match PREFERENCES.iter().find(|p| u64::from(p.1) == n) {
            Some(p) => ask.changed(p.0, "shown by its name"),
            None => ask.as_is(n),
        },
    }
}

fn sampling_rate(ask: &Ask) -> Result<Taken, Refusal> {
    /// Two ticks of a kernel that ticks a thousand times a second; which one this is, no file tells.
    const TWO_TICKS_US: u32 = 2000;
    let asked = ask.leading()?;
    // drivers/cpufreq/cpufreq_governor.c, sampling_rate_store: CPUFREQ_DBS_MIN_SAMPLING_INTERVAL.
    if ask.release() >= (4, 15) && asked < TWO_TICKS_US {
        return Err(INTERVAL);
    }
    let least = ask.number("sampling_rate_min").unwrap_or(0);
    ask.changed(asked.max(least), "raised to sampling_rate_min")
}

fn uncore(ask: &Ask) -> Result<Taken, Refusal> {
    // drivers/platform/x86/intel/uncore-frequency: a ratio of 7 bits; the order is not checked.
    match ask.whole().map_err(|_| RATIO)? / 100_000 {
        0 | 128.. => Err(RATIO),
        ratio => ask.changed(ratio * 100_000, "rounded down to 100 MHz"),
    }
}

fn has_flag(view: &dyn View, flag: &str) -> bool {
    flags(view).split_whitespace().any(|f| f == flag)
}

/// What the first processor says that it has.
fn flags(view: &dyn View) -> String {
    let info = view.text("proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find_map(|l| l.strip_prefix("flags")?.trim_start().strip_prefix(':'));
    flags.unwrap_or("").trim().to_owned()
}
