//! Which machine it is: what a plan that is gone on with must find again.
//!
//! A measurement's other half, made on another machine, is no half of it. Processor, number of CPUs, microcode, kernel and
//! meters decide that; another start of the same machine does not, and is told.

use crate::cpus::topology::Topology;
use crate::root::{Root, label};
use crate::states::power::{Zone, zones};
use serde::{Deserialize, Serialize};

/// What tells one machine from another, and one of its starts from the next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    /// Its processor.
    pub processor: String,
    /// CPUs online.
    pub cpus: usize,
    /// The processor's microcode; empty where the kernel does not tell.
    pub microcode: String,
    /// The kernel's release.
    pub kernel: String,
    /// What meters energy, by name.
    pub meters: Vec<String>,
    /// This start of the machine.
    pub boot: String,
}

impl Identity {
    /// Reads it.
    pub fn read(root: &dyn Root) -> Identity {
        let topology = Topology::read(root);
        let text = |path: &str| label(root, path).unwrap_or_default();
        let energy = zones(root).value.unwrap_or_default();
        let mut meters: Vec<String> = energy.iter().flat_map(Zone::walk).map(|z| z.name.clone()).collect();
        meters.sort();
        meters.dedup();
        Identity {
            cpus: topology.online.iter().count(),
            processor: topology.processor.unwrap_or_default(),
            microcode: text("sys/devices/system/cpu/cpu0/microcode/version"),
            kernel: text("proc/sys/kernel/osrelease"),
            meters,
            boot: text("proc/sys/kernel/random/boot_id"),
        }
    }

    /// What makes this another machine than the one of `then`, a few words; none where it is the same.
    pub fn other_than(&self, then: &Identity) -> Option<String> {
        let meters = |of: &Identity| match of.meters.is_empty() {
            true => "none".to_owned(),
            false => of.meters.join(", "),
        };
        let pairs = [
            ("processor", then.processor.clone(), self.processor.clone()),
            ("number of CPUs", then.cpus.to_string(), self.cpus.to_string()),
            ("microcode", then.microcode.clone(), self.microcode.clone()),
            ("kernel", then.kernel.clone(), self.kernel.clone()),
            ("meters", meters(then), meters(self)),
        ];
        let told = |text: &str| if text.is_empty() { "not told".to_owned() } else { text.to_owned() };
        let other = pairs.into_iter().find(|(_, then, now)| then != now);
        other
            .map(|(what, then, now)| format!("its {what} was {}, and here it is {}", told(&then), told(&now)))
    }
}
