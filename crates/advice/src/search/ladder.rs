//! Ladders: one policy under lower and lower limits of its highest speed.

use wattwise_model::machine::MachineModel;
use wattwise_policy::limits::Bound;
use wattwise_replay::defaults;
use wattwise_replay::spec::{Deepest, PolicySpec};

/// Without a limit.
pub(crate) const WHOLE: u32 = 100;
/// No lower limits are tried, in per cent of the highest speed.
const LOWEST: u32 = 10;
/// The first steps down, as far as each leaves hope for the next.
pub(crate) const COARSE: [u32; 9] = [90, 80, 70, 60, 50, 40, 30, 20, 10];

/// One policy of a race.
#[derive(Clone)]
pub(crate) struct Rung {
    pub(crate) policy: PolicySpec,
    /// The text of the policy without the ladder's limit.
    pub(crate) ladder: String,
    /// The limit, in per cent of the highest speed.
    pub(crate) percent: u32,
}

impl Rung {
    /// A policy as it is.
    pub(crate) fn base(policy: &PolicySpec) -> Rung {
        Rung { policy: policy.clone(), ladder: policy.text.clone(), percent: WHOLE }
    }
}

/// The ladder of a policy.
#[derive(Clone)]
pub(crate) struct Ladder {
    pub(crate) base: PolicySpec,
}

impl Ladder {
    /// The policy at a limit; `None` where it has one of its own, or the limit is none or too low.
    pub(crate) fn rung(&self, percent: u32) -> Option<Rung> {
        if self.base.limits.max.is_some() || !(LOWEST..WHOLE).contains(&percent) {
            return None;
        }
        let mut policy = self.base.clone();
        policy.limits.max = Some(Bound::Share(percent * 1000));
        Some(Rung { policy: policy.renamed(), ladder: self.base.text.clone(), percent })
    }
}

/// A policy with each C-state but the deepest as the deepest allowed.
pub(crate) fn shallower(policy: &PolicySpec, machine: &MachineModel) -> Vec<Rung> {
    let states = machine.kinds.first().map_or(&[][..], |k| &k.idle);
    let limited = |name: &String| {
        let mut policy = policy.clone();
        policy.deepest = Some(Deepest::Name(name.clone()));
        Rung::base(&policy.renamed())
    };
    let names: Vec<&String> = states.iter().map(|s| &s.name).collect();
    let above = names.len().saturating_sub(1);
    names[..above].iter().map(|name| limited(name)).collect()
}

/// Long-term power limits that are tried on a machine that has one, in per cent of its own.
const POWERS: [u32; 3] = [80, 60, 40];

/// A policy under lower limits of a package's power: whole watts below the machine's own limit, none where it has none.
fn capped(policy: &PolicySpec, machine: &MachineModel) -> Vec<Rung> {
    let limit = machine.packages.first().and_then(|p| p.limit);
    let Some(limit) = limit.filter(|_| policy.limits.power_uw.is_none()) else { return Vec::new() };
    let watts = |percent: u32| (limit.long_w * f64::from(percent) / 100.0).round() as u64;
    let capped = |watts: u64| {
        let mut policy = policy.clone();
        policy.limits.power_uw = Some(watts * 1_000_000);
        Rung::base(&policy.renamed())
    };
    POWERS.into_iter().map(watts).filter(|w| *w > 0).map(capped).collect()
}

/// A policy with what a machine has to set beside the cores: lower limits of power, and the memory's clock.
pub(crate) fn beside_the_cores(policy: &PolicySpec, machine: &MachineModel) -> Vec<Rung> {
    let memory = defaults::memory_governors(policy, machine).into_iter().map(|p| Rung::base(&p));
    capped(policy, machine).into_iter().chain(memory).collect()
}

/// A rung with another's limit of C-states.
pub(crate) fn with_states_of(rung: &Rung, other: &Rung) -> Option<Rung> {
    if rung.policy.deepest.is_some() {
        return None;
    }
    let mut policy = rung.policy.clone();
    policy.deepest = other.policy.deepest.clone();
    Some(Rung::base(&policy.renamed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> PolicySpec {
        PolicySpec::parse(text).unwrap()
    }

    #[test]
    fn rungs_are_policies_with_a_limit() {
        let ladder = Ladder { base: policy("hwp:epp=102+cmax=C1E") };
        let text = |percent| ladder.rung(percent).map(|r| r.policy.text);
        assert_eq!(text(90).as_deref(), Some("hwp:epp=102+max=90%+cmax=C1E"));
        assert_eq!((text(100), text(9)), (None, None));
        assert!(Ladder { base: policy("schedutil+max=60%") }.rung(50).is_none());
    }

    #[test]
    fn limits_of_power_are_below_the_machines_own() {
        let texts = |name: &str, base: &str| -> Vec<String> {
            let machine = wattwise_replay::library::machine(name).unwrap();
            capped(&policy(base), &machine).into_iter().map(|r| r.policy.text).collect()
        };
        assert_eq!(
            texts("alderlake-p-laptop", "hwp:epp=102+max=80%"),
            [
                "hwp:epp=102+max=80%+power=22W",
                "hwp:epp=102+max=80%+power=17W",
                "hwp:epp=102+max=80%+power=11W"
            ]
        );
        assert!(texts("alderlake-p-laptop", "hwp:epp=102+power=20W").is_empty(), "it has one");
        assert!(texts("xeon-4210", "schedutil").is_empty(), "the machine has none");
    }

    #[test]
    fn every_state_but_the_deepest_can_be_the_limit() {
        let machine = wattwise_replay::library::machine("xeon-4210").unwrap();
        let shallow = shallower(&policy("schedutil"), &machine);
        let texts: Vec<&str> = shallow.iter().map(|r| r.policy.text.as_str()).collect();
        assert_eq!(texts, ["schedutil+cmax=C1", "schedutil+cmax=C1E"]);
        let both = with_states_of(&Rung::base(&policy("performance+max=70%")), &shallow[0]).unwrap();
        assert_eq!(both.policy.text, "performance+max=70%+cmax=C1");
        assert!(with_states_of(&both, &shallow[1]).is_none());
    }
}
