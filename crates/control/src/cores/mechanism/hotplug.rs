//! CPUs taken offline.

use crate::cores::mechanism::way::{Mechanism, MechanismKind, Moved};
use crate::problem::Problem;
use std::io;
use wattwise_hw::cpus::set::CpuSet;
use wattwise_hw::root::{Root, text};

const CPUS: &str = "sys/devices/system/cpu";

/// CPUs taken offline.
pub(super) struct Hotplug<'r> {
    pub(super) root: &'r dyn Root,
    pub(super) online: CpuSet,
}

impl Hotplug<'_> {
    fn plug(&self, cpu: u32, online: bool) -> Result<(), Problem> {
        let path = format!("{CPUS}/cpu{cpu}/online");
        let wanted = if online { "1" } else { "0" };
        match text(self.root, &path) {
            Some(now) if now == wanted => Ok(()),
            Some(_) => self.root.write(&path, wanted.as_bytes()).map_err(|e| self.failed(&path, &e)),
            None if online => Ok(()),
            None => Err(Problem::Input(format!("CPU {cpu} cannot be taken offline: it has to be kept"))),
        }
    }

    fn failed(&self, path: &str, e: &io::Error) -> Problem {
        let on =
            if self.root.is_this_machine() { String::new() } else { format!(" of {}", self.root.describe()) };
        match e.kind() {
            io::ErrorKind::PermissionDenied => {
                Problem::Failed(format!("/{path}{on}: no permission; run as root"))
            }
            _ => Problem::Failed(format!("/{path}{on}: {e}")),
        }
    }
}

impl Mechanism for Hotplug<'_> {
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
        let path = format!("{CPUS}/online");
        let list = text(self.root, &path);
        let list = list.ok_or_else(|| self.failed(&path, &io::ErrorKind::NotFound.into()))?;
        CpuSet::parse(&list).map_err(|e| Problem::Failed(format!("/{path}: {e}")))
    }

    fn release(&mut self) -> Vec<String> {
        self.online.iter().filter_map(|cpu| self.plug(cpu, true).err()).map(|e| e.to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_hw::root::DirRoot;

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
        let tree = DirRoot::new(root.path());
        let mut hotplug = Hotplug { root: &tree, online: set("0-3") };
        hotplug.keep(&set("0,2")).expect("possible");
        let now = |cpu| std::fs::read_to_string(file(cpu)).expect("there").trim().to_owned();
        assert_eq!([1, 2, 3].map(now), ["0", "1", "0"]);
        assert!(hotplug.keep(&set("1")).is_err_and(|e| e.to_string().contains("CPU 0")));
        assert_eq!(hotplug.release(), Vec::<String>::new());
        assert_eq!([1, 2, 3].map(now), ["1", "1", "1"]);
        Ok(())
    }
}
