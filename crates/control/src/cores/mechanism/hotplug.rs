//! CPUs taken offline.

use crate::cores::Problem;
use crate::cores::mechanism::{Mechanism, MechanismKind, Moved, cpus_in, read, set};
use std::path::PathBuf;
use wattwise_hw::cpus::set::CpuSet;

const CPUS: &str = "sys/devices/system/cpu";

/// CPUs taken offline.
pub(super) struct Hotplug {
    pub(super) root: PathBuf,
    pub(super) online: CpuSet,
}

impl Hotplug {
    fn plug(&self, cpu: u32, online: bool) -> Result<(), Problem> {
        let path = self.root.join(format!("{CPUS}/cpu{cpu}/online"));
        let wanted = if online { "1" } else { "0" };
        match read(&path) {
            Ok(now) if now == wanted => Ok(()),
            Ok(_) => set(&path, wanted),
            Err(_) if online => Ok(()),
            Err(_) => Err(Problem::Input(format!("CPU {cpu} cannot be taken offline: it has to be kept"))),
        }
    }
}

impl Mechanism for Hotplug {
    fn kind(&self) -> MechanismKind {
        MechanismKind::Hotplug
    }

    fn keep(&mut self, kept: &CpuSet) -> Result<Moved, Problem> {
        // Opening first: at no time are there fewer CPUs than before and after.
        for cpu in self.online.and(kept).iter() {
            self.plug(cpu, true)?;
        }
        for cpu in self.online.without(kept).iter() {
            self.plug(cpu, false)?;
        }
        Ok(Moved::default())
    }

    fn kept(&self) -> Result<CpuSet, Problem> {
        cpus_in(&self.root.join(CPUS).join("online"))
    }

    fn release(&mut self) -> Vec<String> {
        self.online.iter().filter_map(|cpu| self.plug(cpu, true).err()).map(|e| e.to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn hotplug_opens_before_it_closes_and_never_takes_what_has_no_switch() -> io::Result<()> {
        let root = tempfile::tempdir()?;
        let file = |cpu: u32| root.path().join(format!("{CPUS}/cpu{cpu}/online"));
        for cpu in 0..4 {
            std::fs::create_dir_all(file(cpu).parent().expect("a folder"))?;
            // The boot CPU of a PC has no switch.
            if cpu > 0 {
                std::fs::write(file(cpu), "1\n")?;
            }
        }
        let set = |t: &str| CpuSet::parse(t).expect("a list");
        let mut hotplug = Hotplug { root: root.path().to_owned(), online: set("0-3") };
        hotplug.keep(&set("0,2")).expect("possible");
        let now = |cpu| read(&file(cpu)).expect("there");
        assert_eq!([1, 2, 3].map(now), ["0", "1", "0"]);
        assert!(hotplug.keep(&set("1")).is_err_and(|e| e.to_string().contains("CPU 0")));
        assert_eq!(hotplug.release(), Vec::<String>::new());
        assert_eq!([1, 2, 3].map(now), ["1", "1", "1"]);
        Ok(())
    }
}
