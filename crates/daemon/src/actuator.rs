//! What is wanted, as this machine's settings.
//!
//! | driver | bias | a speed policy |
//! |---|---|---|
//! | intel_pstate and amd-pstate in active mode | the energy-performance preference; governor `powersave` | the hardware's own (`hwp`, `amd-pstate-epp`, `intel_pstate`) by preference; others live, as a cap on the speed |
//! | any with governors of the kernel's | the governor; without boost where energy comes first | the kernel's own by name; others live: `userspace`, else least and highest speed alike |
//! | none | nothing: no authority, said once | refused |
//!
//! Beside it: the bias (EPB) where there is no preference, boost, and the firmware's profile.
//!
//! Whose word does not count says so: **no authority** where the hardware has no ear, **owned by the kernel** where the
//! kernel has taken a file for itself (amd-pstate's dynamic preference). A setting that cannot be had is named, and the rest is done.

use crate::profile::{Bias, SpeedChoice, Wish};
use std::collections::BTreeSet;
use wattwise_control::set::plan::{Inventory, PlanError, Setting, plan};
use wattwise_control::set::transaction::Change;
use wattwise_figure::setting::{self, add, words};
use wattwise_hw::cpus::select::Selector;
use wattwise_hw::root::{Root, exists, text};
use wattwise_hw::rules;
use wattwise_hw::states::cpufreq::Cpufreq;
use wattwise_policy::speed::tunables::kernel_name;
use wattwise_policy::{Autonomy, Cadence, DomainInfo, Khz, Level, MS, Platform, Settings};

const PROFILE: &str = "sys/firmware/acpi";

/// Who chooses the speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// A governor of the kernel's, `userspace` among them: one speed can be asked for.
    Userspace,
    /// A governor of the kernel's, no `userspace`: least and highest speed alike.
    Limits,
    /// The hardware chooses, below a cap.
    Cap,
}

/// What is to be put in force.
#[derive(Clone, Default)]
pub struct Orders {
    /// Writes in the kernel's order.
    pub changes: Vec<Change>,
    /// What follows from them.
    pub beside: Vec<Change>,
    /// A policy to be followed here, and by what authority.
    pub live: Option<(SpeedChoice, Authority)>,
    /// What cannot be had: (setting, why).
    pub refused: Vec<(String, String)>,
}

/// The authority over the speed; none where there is none, with the reason.
///
/// # Errors
/// One line that says why there is none.
pub fn authority(cpufreq: &Cpufreq) -> Result<Authority, String> {
    let Some(policy) = cpufreq.policies().iter().find(|p| !p.is_offline()) else {
        return Err(format!("no authority over the speed: {}", cpufreq.policies.why_not()));
    };
    let driver = policy.driver.as_deref().unwrap_or_default();
    Ok(match () {
        () if rules::is_active_driver(driver) => Authority::Cap,
        () if policy.governors.iter().any(|g| g == "userspace") => Authority::Userspace,
        () => Authority::Limits,
    })
}

fn preference(bias: Bias) -> &'static str {
    match bias {
        Bias::Performance => "performance",
        Bias::Balanced => "balance_performance",
        Bias::BalancedPower => "balance_power",
        Bias::Power => "power",
    }
}

/// A bias as the settings of a machine: those that it has.
pub fn of_bias(root: &dyn Root, cpufreq: &Cpufreq, bias: Bias) -> Vec<Setting> {
    let mut settings = Vec::new();
    let online: Vec<_> = cpufreq.policies().iter().filter(|p| !p.is_offline()).collect();
    let first = online.first();
    let driver = first.and_then(|p| p.driver.as_deref()).unwrap_or_default();
    let has = |governor: &str| first.is_some_and(|p| p.governors.iter().any(|g| g == governor));
    if rules::is_active_driver(driver) {
        if has("powersave") {
            settings.push(Setting::Governor("powersave".into()));
        }
    } else {
        let words: &[&str] = match bias {
            Bias::Performance => &["performance"],
            _ => &["schedutil", "ondemand", "conservative"],
        };
        settings.extend(words.iter().find(|w| has(w)).map(|w| Setting::Governor((*w).into())));
    }
    if first.is_some_and(|p| p.epp.is_some()) {
        settings.push(Setting::Epp(preference(bias).into()));
    } else if exists(root, "sys/devices/system/cpu/cpu0/power/energy_perf_bias") {
        let bias = match bias {
            Bias::Performance => "performance",
            Bias::Balanced => "normal",
            Bias::BalancedPower => "balance-power",
            Bias::Power => "power",
        };
        settings.push(Setting::Epb(bias.into()));
    }
    let own_boost = online.iter().any(|p| p.boost.is_some());
    if cpufreq.boost.as_ref().is_some_and(|b| !b.locked) || (cpufreq.boost.is_none() && own_boost) {
        settings.push(Setting::Boost(bias != Bias::Power));
    }
    let choices = text(root, &format!("{PROFILE}/platform_profile_choices")).unwrap_or_default();
    let words: &[&str] = match bias {
        Bias::Performance => &["performance"],
        Bias::Balanced | Bias::BalancedPower => &["balanced"],
        Bias::Power => &["low-power", "quiet"],
    };
    let profile = words.iter().find(|w| choices.split_whitespace().any(|c| c == **w));
    settings.extend(profile.map(|w| Setting::Plain(&setting::PROFILE, (*w).into())));
    settings
}

/// Settings, and what is to be followed beside them.
type OfSpeed = (Vec<Setting>, Option<(SpeedChoice, Authority)>);

/// The policies that are the hardware's own, with the driver's file name.
const OF_HARDWARE: [&str; 3] = ["hwp", "amd-pstate-epp", "intel_pstate"];
/// Those that only the kernel can run: they need the scheduler's own hooks.
const OF_KERNEL: [&str; 4] = ["schedutil", "ondemand", "performance", "powersave"];

/// A speed policy as settings, or to be followed here.
///
/// # Errors
/// One line: why it cannot be had, and what puts it in force.
pub(crate) fn of_speed(cpufreq: &Cpufreq, choice: &SpeedChoice) -> Result<OfSpeed, String> {
    let authority = authority(cpufreq)?;
    let name = choice.speed.name;
    let governors = cpufreq.policies().iter().find(|p| !p.is_offline()).map(|p| p.governors.as_slice());
    let offered = governors.unwrap_or_default().iter().any(|g| g == name);
    if OF_HARDWARE.contains(&name) {
        if authority != Authority::Cap {
            return Err(format!(
                "{name} is the hardware's own rule, and this driver is passive; 'wattwise set --driver-mode active' gives it the word"
            ));
        }
        let mut settings = vec![Setting::Governor("powersave".into())];
        if let Some(param) = choice.speed.params.iter().find(|p| p.name == "epp") {
            settings.push(Setting::Epp(param.kind.show(choice.settings.number("epp"))));
        }
        return Ok((settings, None));
    }
    if name == "performance" && authority == Authority::Cap {
        return Ok((vec![Setting::Governor("performance".into())], None));
    }
    // On a driver that chooses itself `powersave` is that driver's word for its own rule.
    if offered && !(name == "powersave" && authority == Authority::Cap) {
        return Ok((by_kernel(choice), None));
    }
    let cadence = (choice.speed.build)(&nominal(), &choice.settings).cadence();
    if OF_KERNEL.contains(&name) || matches!(cadence, Cadence::Scheduler { .. }) {
        let how = match authority {
            Authority::Cap => "'wattwise set --driver-mode passive' gives governors the word",
            _ => "load its module, such as cpufreq_ondemand, or choose another",
        };
        return Err(format!(
            "{name} needs the kernel's own hooks, and this driver has no such governor ({}); {how}; \
             'wattwise set --governor {name}' then puts it in force",
            governors.unwrap_or_default().join(", ")
        ));
    }
    let governor = match authority {
        Authority::Userspace => Some("userspace"),
        Authority::Cap => Some("powersave"),
        // Its own limits hold it.
        Authority::Limits => None,
    };
    let settings = governor.map(|g| Setting::Governor(g.into())).into_iter().collect();
    Ok((settings, Some((choice.clone(), authority))))
}

/// A governor and those of its parameters that are not at their default.
fn by_kernel(choice: &SpeedChoice) -> Vec<Setting> {
    let mut settings = vec![Setting::Governor(choice.speed.name.into())];
    let defaults = Settings::defaults(choice.speed.params);
    for (now, before) in choice.settings.iter().zip(defaults.iter()) {
        let kernel = kernel_name(choice.speed.name, now.0).filter(|_| now != before);
        let param = choice.speed.params.iter().find(|p| p.name == now.0);
        if let (Some(tunable), Some(param)) = (kernel, param) {
            settings.push(Setting::Tunable(tunable.into(), param.kind.show(now.1)));
        }
    }
    settings
}

/// Plans a wish for a machine as it was before our changes.
pub fn orders(root: &dyn Root, wish: &Wish) -> Orders {
    let inventory = Inventory::read(root);
    let mut orders = Orders::default();
    let mut settings: Vec<Setting> = Vec::new();
    if let Some(bias) = wish.bias {
        let found = of_bias(root, &inventory.cpufreq, bias);
        if found.is_empty() {
            let why =
                "no authority: neither governor, preference, boost nor a firmware's profile can be set here";
            orders.refused.push((format!("bias {}", bias.word()), why.to_owned()));
        }
        found.into_iter().for_each(|s| add(&mut settings, s));
    }
    if let Some(choice) = &wish.speed {
        match of_speed(&inventory.cpufreq, choice) {
            Ok((found, live)) => {
                found.into_iter().for_each(|s| add(&mut settings, s));
                orders.live = live;
            }
            Err(why) => orders.refused.push((format!("speed {}", choice.text), why)),
        }
    }
    for setting in &wish.settings {
        // The governor is how a followed policy's word reaches the driver.
        match (&orders.live, setting) {
            (Some((choice, _)), Setting::Governor(name)) => {
                let why = format!("{} is followed here, and chooses the speed in its place", choice.text);
                orders.refused.push((format!("governor {name}"), why));
            }
            _ => add(&mut settings, setting.clone()),
        }
    }
    planned(root, &inventory, settings, &mut orders);
    orders
}

/// The writes for as many of the settings as can be had.
fn planned(root: &dyn Root, inventory: &Inventory, mut settings: Vec<Setting>, orders: &mut Orders) {
    let cpus = match Selector::default().resolve(&inventory.topology, false) {
        Ok(cpus) => cpus,
        Err(e) => return orders.refused.push(("all".to_owned(), e.to_string())),
    };
    let named = |s: &Setting| words(std::slice::from_ref(s)).join(" ").trim_start_matches("--").to_owned();
    loop {
        match plan(root, inventory, &cpus, &settings) {
            Ok(plan) => {
                let mut said = BTreeSet::new();
                for step in plan.steps {
                    match step.verdict {
                        Ok(_) => orders.changes.push(step.change),
                        Err(refusal) => {
                            let is_owned = ["epp-dynamic", "governor-dynamic-epp"].contains(&refusal.id);
                            let owned = if is_owned { "owned by the kernel: " } else { "" };
                            let why = format!("{owned}{}", refusal.rule);
                            if said.insert(why.clone()) {
                                orders.refused.push((step.change.what, why));
                            }
                        }
                    }
                }
                orders.beside.extend(plan.beside);
                return;
            }
            Err(e) => {
                let alone = |s: &Setting| plan(root, inventory, &cpus, std::slice::from_ref(s)).err();
                let at = settings.iter().position(|s| alone(s).is_some()).unwrap_or(settings.len() - 1);
                let setting = settings.remove(at);
                let why = match alone(&setting).unwrap_or(e) {
                    PlanError::Impossible(why) => format!("no authority: {why}"),
                    PlanError::Input(why) => why,
                };
                orders.refused.push((named(&setting), why));
                if settings.is_empty() {
                    return;
                }
            }
        }
    }
}

/// A machine of one CPU, to ask policies for their cadence.
pub fn nominal() -> Platform {
    let levels = [2_000_000, 1_000_000].map(|khz| Level { khz: Khz(khz), busy_uw: None }).to_vec();
    platform(
        vec![DomainInfo {
            cpus: vec![0],
            levels,
            transition_ns: 0,
            base: Khz(2_000_000),
            boost_with: None,
            load_full: Khz(2_000_000),
            capacity: 1024,
        }],
        1,
    )
}

/// A machine as policies that are followed see it.
pub(crate) fn platform(domains: Vec<DomainInfo>, cpus: u16) -> Platform {
    Platform {
        domains,
        cpus,
        tick_ns: 10 * MS,
        load_invariant: false,
        boost: true,
        deepest_idle_uw: None,
        awake_uw: None,
        autonomy: Autonomy::default(),
    }
}
