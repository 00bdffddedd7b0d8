//! Meters: joules with their provenance.
//!
//! A [`Meter`] opens every counter of energy that a machine has, the best mechanism for each domain (perf
//! events, powercap, registers, hwmon), tests each once, and follows them over windows. What it says of a domain is
//! *measured* or *unavailable, because*; the residency model says *modelled*. It reads at the ends of a
//! window, and in between only as often as wraps demand.

pub mod battery;
pub mod channel;
pub mod counter;
pub mod domain;
pub mod source;
#[cfg(test)]
mod tests;

use crate::channel::{Channel, Unavailable};
use crate::counter::{Follower, Total};
use crate::domain::{Domain, roots};
use crate::source::channels;
use serde::Serialize;
use std::time::Duration;
use wattwise_figure::Provenance;
use wattwise_hw::clock::Moment;

use wattwise_hw::root::Root;

/// A domain's energy over a window.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DomainEnergy {
    /// What.
    pub domain: Domain,
    /// By what.
    pub by: &'static str,
    /// What the counter showed.
    #[serde(flatten)]
    pub total: Total,
}

/// The energy of a machine over a window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Energy {
    /// Sum over the domains that lie in no other, J; none where nothing is metered, or a gap spoils it.
    pub joules: Option<f64>,
    /// How it came about, or why there is none.
    pub provenance: Provenance,
    /// Each domain, those inside others too.
    pub domains: Vec<DomainEnergy>,
}

/// The counters of a machine.
pub struct Meter {
    channels: Vec<(Box<dyn Channel>, Follower)>,
    /// What gives nothing, and why.
    pub unavailable: Vec<Unavailable>,
}

impl Meter {
    /// Opens a machine's counters.
    pub fn open(root: &dyn Root) -> Meter {
        let (channels, unavailable) = channels(root);
        let channels =
            channels.into_iter().map(|c| (Follower::new(c.shape()), c)).map(|(f, c)| (c, f)).collect();
        Meter { channels, unavailable }
    }

    /// Reads every counter until it has moved, for at most `patience`; one that never does, or that cannot be
    /// read, is set aside with its reason. `pause` waits between looks.
    pub fn self_test(&mut self, patience: Duration, mut pause: impl FnMut(Duration)) {
        const LOOK: Duration = Duration::from_millis(5);
        let mut first: Vec<Result<u64, String>> =
            self.channels.iter_mut().map(|(c, _)| c.read().map_err(|e| e.to_string())).collect();
        let mut moved = vec![false; first.len()];
        let mut waited = Duration::ZERO;
        while waited < patience && moved.iter().zip(&first).any(|(m, f)| !m && f.is_ok()) {
            pause(LOOK);
            waited += LOOK;
            for ((channel, _), (moved, first)) in
                self.channels.iter_mut().zip(moved.iter_mut().zip(&mut first))
            {
                match (channel.read(), &first) {
                    (Ok(now), Ok(then)) => *moved |= now != *then,
                    (Err(e), _) => *first = Err(e.to_string()),
                    _ => {}
                }
            }
        }
        let mut verdicts = moved.into_iter().zip(first).map(|(moved, first)| match first {
            Err(why) => Some(why),
            Ok(_) if !moved => Some(format!("the counter did not move within {} ms", patience.as_millis())),
            Ok(_) => None,
        });
        let unavailable = &mut self.unavailable;
        self.channels.retain(|(channel, _)| match verdicts.next().flatten() {
            Some(why) => {
                unavailable.push(Unavailable {
                    what: format!("{} of {}", channel.mechanism(), channel.domain()),
                    why,
                });
                false
            }
            None => true,
        });
    }

    /// Whether anything is metered.
    pub fn is_empty(&self) -> bool {
        self.channels.is_empty()
    }

    /// The longest that may pass between two readings, s: half of what the fastest wrap allows.
    pub fn longest_s(&self) -> f64 {
        self.channels.iter().map(|(c, _)| c.shape().longest_s() / 2.0).fold(f64::INFINITY, f64::min)
    }

    /// Begins a window.
    pub fn begin(&mut self, at: Moment) {
        for (channel, follower) in &mut self.channels {
            *follower = Follower::new(channel.shape());
        }
        self.sample(at);
    }

    /// Reads all counters.
    pub fn sample(&mut self, at: Moment) {
        for (channel, follower) in &mut self.channels {
            match channel.read() {
                Ok(value) => _ = follower.reading(at, value),
                Err(_) => follower.unreadable(at),
            }
        }
    }

    /// What was used since the window began.
    pub fn energy(&self) -> Energy {
        let domains: Vec<DomainEnergy> = self
            .channels
            .iter()
            .map(|(c, f)| DomainEnergy { domain: c.domain(), by: c.mechanism(), total: f.total() })
            .collect();
        let names: Vec<Domain> = domains.iter().map(|d| d.domain).collect();
        let roots = roots(&names);
        let of_roots: Vec<&DomainEnergy> =
            roots.iter().filter_map(|r| domains.iter().find(|d| d.domain == *r)).collect();
        let unavailable = |why: String| (None, Provenance::Unavailable { why });
        let (joules, provenance) = match () {
            () if of_roots.is_empty() => {
                let why: Vec<String> =
                    self.unavailable.iter().map(|u| format!("{}: {}", u.what, u.why)).collect();
                unavailable(if why.is_empty() { "no meter was found".to_owned() } else { why.join("; ") })
            }
            () if let Some(gap) = of_roots.iter().find(|d| d.total.missing_s > 0.0) => unavailable(format!(
                "{} could not be followed for {:.3} s of the window",
                gap.domain, gap.total.missing_s
            )),
            () if let Some(still) = of_roots.iter().find(|d| d.total.updates == 0) => unavailable(format!(
                "the counter of {} did not move within the window: it is too short",
                still.domain
            )),
            () => {
                let mut by: Vec<&str> = of_roots.iter().map(|d| d.by).collect();
                by.dedup();
                let names: Vec<String> = roots.iter().map(Domain::to_string).collect();
                let by = format!("{} ({})", by.join(" and "), names.join(" + "));
                (Some(of_roots.iter().map(|d| d.total.joules).sum()), Provenance::Measured { by })
            }
        };
        Energy { joules, provenance, domains }
    }
}
