//! Which machine it is: what a plan that is gone on with must find again.
//!
//! A measurement's other half, made on another machine, is no half of it. Processor, number of CPUs, microcode, kernel and
//! meters decide that; another start of the same machine does not, and is told.

use crate::cpus::topology;
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
        let text = |path: &str| label(root, path).unwrap_or_default();
        let energy = zones(root).value.unwrap_or_default();
        let mut meters: Vec<String> = energy.iter().flat_map(Zone::walk).map(|z| z.name.clone()).collect();
        meters.sort();
        meters.dedup();
        Identity {
            cpus: topology::online(root).iter().count(),
            processor: topology::processor(root).unwrap_or_default(),
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
        other.map(|(what, then, now)| {
            let (was, is) = if what == "meters" { ("were", "they are") } else { ("was", "it is") };
            format!("its {what} {was} {}, and here {is} {}", told(&then), told(&now))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_start_is_the_same_machine() {
        let then = Identity {
            processor: "Intel(R) Core(TM) i5-2500".into(),
            cpus: 4,
            microcode: "0x2f".into(),
            kernel: "6.12.1".into(),
            meters: vec!["package-0".into()],
            boot: "a".into(),
        };
        assert_eq!(Identity { boot: "b".into(), ..then.clone() }.other_than(&then), None);
        for (now, told) in [
            (
                Identity { processor: "AMD Ryzen 7".into(), ..then.clone() },
                "its processor was Intel(R) Core(TM) i5-2500, and here",
            ),
            (Identity { cpus: 2, ..then.clone() }, "its number of CPUs was 4, and here it is 2"),
            (
                Identity { microcode: String::new(), ..then.clone() },
                "its microcode was 0x2f, and here it is not told",
            ),
            (Identity { kernel: "6.13".into(), ..then.clone() }, "its kernel was 6.12.1"),
            (
                Identity { meters: Vec::new(), ..then.clone() },
                "its meters were package-0, and here they are none",
            ),
        ] {
            assert!(now.other_than(&then).is_some_and(|why| why.starts_with(told)), "{told}");
        }
    }
}
