//! The policies of a comparison when none is named: those that a user of a machine's system can have there.
//!
//! All have the machine's own idle policy and placement, so that they differ in what is compared: the speed.

use crate::driver::SpeedDriver;
use crate::spec::PolicySpec;
use std::collections::BTreeSet;
use wattwise_model::machine::MachineModel;
use wattwise_policy::System;
use wattwise_policy::dram::DramSpec;

/// What Linux's governors offer, with limits that users set.
const GOVERNORS: &[&str] = &[
    "performance",
    "schedutil",
    "ondemand",
    "conservative",
    "powersave",
    "schedutil+max=80%",
    "schedutil+max=60%",
    "ondemand+max=60%",
];
/// The same, where there is a boost to do without.
const WITHOUT_BOOST: &[&str] = &["schedutil+noboost", "performance+noboost"];
const FREEBSD: &[&str] =
    &["performance", "powerd", "powerd:mode=adaptive", "powerd++", "powerd++:mode=adaptive", "powersave"];
const OPENBSD: &[&str] =
    &["performance", "openbsd-auto", "openbsd-auto:mains=auto", "obsdfreqd", "powersave"];
/// What no system offers as it comes.
const OTHERS: &[&str] = &[
    "race-to-idle",
    "burst",
    "powerd-2010",
    "openbsd-auto:version=2021,mains=auto",
    "powersaving:on=always,mains=auto",
];

/// The policies to compare on a machine under a system; with none, those of every system and those of none.
/// The machine's own default policy comes first where it is that system's; on a machine of one speed it is the only one.
pub fn default_policies(machine: &MachineModel, system: Option<System>) -> Vec<PolicySpec> {
    let mut texts = Vec::new();
    let chooses = machine.kinds.iter().any(|k| k.levels.len() > 1);
    if !chooses {
        // Where every policy is the same there is nothing to compare.
        return PolicySpec::parse(&machine.default_policy).into_iter().collect();
    }
    if system.is_none() || System::find(&machine.system) == system {
        texts.push(machine.default_policy.clone());
    }
    let systems = system.map_or(System::ALL.to_vec(), |s| vec![s]);
    for system in &systems {
        match system {
            System::Linux => linux(machine, &mut texts),
            System::FreeBsd => texts.extend(FREEBSD.iter().copied().map(String::from)),
            System::OpenBsd => texts.extend(OPENBSD.iter().copied().map(String::from)),
        }
    }
    if system.is_none() {
        texts.extend(OTHERS.iter().copied().map(String::from));
    }
    // The machine's own policy may be one of the list, in other words.
    let mut seen = BTreeSet::new();
    let parsed = texts.iter().filter_map(|t| PolicySpec::parse(t).ok());
    parsed.filter(|p| seen.insert(p.text.clone())).collect()
}

/// A policy with the memory's clock held at its highest and its lowest, where the kernel sets it and the policy leaves that to the
/// machine's own governor.
pub fn memory_governors(policy: &PolicySpec, machine: &MachineModel) -> Vec<PolicySpec> {
    let Some(clock) =
        machine.memory_clock.as_ref().filter(|clock| clock.khz.len() > 1 && policy.dram.is_none())
    else {
        return Vec::new();
    };
    let others = ["performance", "powersave"].into_iter().filter(|name| *name != clock.governor);
    let with = |name: &str| Some(PolicySpec { dram: DramSpec::parse(name).ok(), ..policy.clone() }.renamed());
    others.filter_map(with).collect()
}

/// What a machine's Linux does unless somebody has chosen: its driver by itself, where that chooses speeds, else the first of
/// the governors that distributions have as their default (Debian and Ubuntu: schedutil, before ondemand). None where neither is
/// known; of other systems the machine file tells.
pub fn untouched(machine: &MachineModel) -> Option<PolicySpec> {
    const USUAL: [&str; 2] = ["schedutil", "ondemand"];
    if System::find(&machine.system) != Some(System::Linux) {
        return PolicySpec::parse(&machine.default_policy).ok();
    }
    let driver = SpeedDriver::find(&machine.driver)?;
    // intel_pstate without HWP begins in passive mode.
    let own = driver.active.filter(|own| *own != "intel_pstate");
    let listed = |name: &&str| machine.governors.is_empty() || machine.governors.iter().any(|g| g == name);
    let text = own.or_else(|| USUAL.into_iter().find(listed))?;
    PolicySpec::parse(text).ok()
}

/// What the limit of time counts from beside what is in force: what the system does unless told otherwise, and what wattwise has
/// put another policy in the place of.
pub fn standards(machine: &MachineModel) -> Vec<PolicySpec> {
    let replaced = machine.replaced_policies.iter().filter_map(|text| PolicySpec::parse(text).ok());
    untouched(machine).into_iter().chain(replaced).collect()
}

fn linux(machine: &MachineModel, texts: &mut Vec<String>) {
    let driver = SpeedDriver::find(&machine.driver);
    let boosts = machine.kinds.iter().any(|k| k.base_khz < k.levels[0].khz);
    let mut lowest = String::new();
    if let Some(own) = driver.and_then(|d| d.active) {
        if own != "intel_pstate" {
            let words = ["performance", "balance_performance", "balance_power", "power"];
            texts.extend(words.map(|epp| format!("{own}:epp={epp}")));
        }
        // With the preference in force, where that is the machine's default.
        let usual = &machine.default_policy;
        let usual = if usual.starts_with(own) && !usual.contains('+') { usual.as_str() } else { own };
        texts.extend([usual.to_owned(), format!("{usual}+max=60%")]);
        texts.extend(boosts.then(|| format!("{usual}+noboost")));
        // The governor powersave is that rule; the lowest speed is a limit on it.
        lowest = format!("{usual}+max=min");
    }
    let more = if boosts { WITHOUT_BOOST } else { &[] };
    // What its kernel does not have nobody can put in force.
    let has = |g: &&&str| {
        let name = g.split('+').next().unwrap_or_default();
        machine.governors.is_empty() || machine.governors.iter().any(|own| own == name)
    };
    let governors = GOVERNORS.iter().chain(more).filter(has).map(|g| match *g {
        "powersave" if driver.is_some_and(|d| d.own.is_some()) => lowest.clone(),
        governor => governor.to_owned(),
    });
    texts.extend(governors);
    let own = PolicySpec::parse(&machine.default_policy).ok();
    let memory = own.map(|own| memory_governors(&own, machine)).unwrap_or_default();
    texts.extend(memory.into_iter().map(|p| p.text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::{ApplyTarget, apply_line};
    use crate::driver::NO_DRIVER;
    use crate::library;
    use wattwise_model::machine::{MemoryClock, builtin};

    fn texts(machine: &str, system: Option<System>) -> Vec<String> {
        let machine = library::machine(machine).expect("bundled");
        default_policies(&machine, system).into_iter().map(|p| p.text).collect()
    }

    #[test]
    fn every_text_is_a_policy_and_canonical() {
        for text in GOVERNORS.iter().chain(WITHOUT_BOOST).chain(FREEBSD).chain(OPENBSD).chain(OTHERS) {
            assert_eq!(PolicySpec::parse(text).expect("a policy").text, *text);
        }
    }

    /// A board whose kernel sets the memory's clock is asked for its ends as well.
    #[test]
    fn a_memory_s_clock_is_compared_where_there_is_one() {
        let mut machine = library::machine("alderlake-p-laptop").expect("bundled");
        let with_dram = |machine: &MachineModel| -> Vec<String> {
            let all = default_policies(machine, Some(System::Linux)).into_iter().map(|p| p.text);
            all.filter(|text| text.contains("dram")).collect()
        };
        assert!(with_dram(&machine).is_empty());
        machine.memory_clock = Some(MemoryClock {
            khz: vec![2_112_000, 528_000],
            top_w: 0.6,
            follows: 0.65,
            core_share: 0.04,
            poll_ns: 50_000_000,
            governor: "powersave".into(),
        });
        assert_eq!(with_dram(&machine), ["hwp:epp=102+dram=performance"]);
    }

    #[test]
    fn a_laptop_with_hwp_has_its_preferences() {
        assert_eq!(
            texts("alderlake-p-laptop", Some(System::Linux)),
            [
                "hwp:epp=102",
                "hwp:epp=performance",
                "hwp",
                "hwp:epp=balance_power",
                "hwp:epp=power",
                "hwp:epp=102+max=60%",
                "hwp:epp=102+noboost",
                "performance",
                "schedutil",
                "ondemand",
                "conservative",
                "hwp:epp=102+max=min",
                "schedutil+max=80%",
                "schedutil+max=60%",
                "ondemand+max=60%",
                "schedutil+noboost",
                "performance+noboost",
            ]
        );
        let old = texts("i7-4510u", Some(System::Linux));
        assert_eq!(old[..4], ["schedutil", "intel_pstate", "intel_pstate+max=60%", "intel_pstate+noboost"]);
        assert!(old.iter().all(|t| !t.starts_with("hwp")));
    }

    #[test]
    fn an_amd_laptop_has_amds_preferences() {
        let mut machine = library::machine("i7-4510u").expect("bundled");
        (machine.driver, machine.default_policy) = ("amd-pstate-epp".into(), "amd-pstate-epp".into());
        let policies = default_policies(&machine, Some(System::Linux));
        let lines: Vec<String> = policies
            .iter()
            .filter(|p| p.speed.name == "amd-pstate-epp")
            .map(|p| apply_line(p, &ApplyTarget::of(&machine, System::Linux)).expect("it can be applied"))
            .collect();
        let set = "wattwise set --governor powersave --epp ";
        assert_eq!(
            lines,
            [
                "balance_performance",
                "performance",
                "balance_power",
                "power",
                "balance_performance --max 60%",
                "balance_performance --boost off",
                "balance_performance --max min",
            ]
            .map(|rest| format!("{set}{rest}"))
        );
    }

    #[test]
    fn any_has_them_all() {
        let any = texts("thinkpad-r51", None);
        for system in System::ALL {
            assert!(
                texts("thinkpad-r51", Some(system)).iter().all(|t| any.contains(t)),
                "{}",
                system.title()
            );
        }
        assert!(any.contains(&"race-to-idle".to_owned()));
    }

    /// What is offered for a system can be applied there, and differs in the speed alone.
    #[test]
    fn what_is_offered_can_be_applied() {
        for name in builtin::names() {
            let machine = library::machine(name).expect("bundled");
            let own = System::find(&machine.system).expect("known");
            for p in default_policies(&machine, Some(own)) {
                assert!(p.idle.is_none() && p.placement.is_none() && p.cores.is_none(), "{}", p.text);
                let line = apply_line(&p, &ApplyTarget::of(&machine, own));
                assert!(line.is_ok() || machine.driver == NO_DRIVER, "{name}: {}: {line:?}", p.text);
            }
        }
    }
}
