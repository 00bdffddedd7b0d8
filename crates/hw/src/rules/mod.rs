//! The kernel's rules for attributes that change power states: ONE table.
//!
//! It feeds the validation of what a user asks, `set --dry-run`, the emulator and the docs. A row
//! says what an attribute is, what it takes, and what the kernel refuses with which error and why;
//! its function decides. A decision is pure: it reads the machine through a [`AttributeView`] and gives
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

mod ask;
mod attribute;
mod decide;
mod kernel;
mod refusal;
mod table;

pub use ask::{Limit, TakenWrite, limit_khz};
pub use attribute::Attribute;
pub use kernel::{
    AttributeView, BIASES, DYNAMIC_EPP, HIGHEST_LIMIT_UW, PREFERENCES, Relation, driver_step,
    is_active_driver, levels, limits, owns_preferences, preferences, release, resolve, time_window_us,
    turbo_is_locked,
};
pub use refusal::{REFUSALS, Refusal};

use crate::probe::why;
use crate::root::Root;
use ask::Ask;
use refusal::{ABSENT, INACTIVE, INACTIVE_OLD, READ_ONLY, UNKNOWN};
use rustix::io::Errno;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::OnceLock;
use table::TABLE;

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

/// Why a file could not be written: the kernel's rule that refuses with this error, where there is one; else as [`why`].
pub fn why_not_written(error: &io::Error, path: &str, root: &dyn Root) -> String {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    // The errors that mean one thing at one file; EACCES and EINVAL have many reasons.
    let telling = [Errno::PERM, Errno::BUSY, Errno::OPNOTSUPP, Errno::NODEV];
    let rule = errno.filter(|e| telling.contains(e)).and_then(|e| refusal(path, e));
    match rule {
        Some(rule) => {
            format!("{}{path}: {} ({})", if root.is_this_machine() { "/" } else { "" }, rule, rule.errno)
        }
        None => why(error, path, root),
    }
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
pub fn judge(view: &dyn AttributeView, path: &str, value: &str) -> Result<String, Refusal> {
    explain(view, path, value).map(|taken| taken.shows)
}

/// As [`judge`], and why the attribute will show something else than what was written.
///
/// # Errors
/// The kernel's refusal, with its error number and what to do instead.
pub fn explain(view: &dyn AttributeView, path: &str, value: &str) -> Result<TakenWrite, Refusal> {
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
