//! Which CPUs a task may use, as `taskset` and cpusets limit it.

use crate::machine::MachineModel;

/// The CPUs that a task may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// These, by their numbers.
    Cpus(Vec<u16>),
    /// Those of one core. A machine with fewer cores is counted through again.
    Core(u32),
    /// Those of one package, counted likewise.
    Package(u32),
}

impl Affinity {
    /// Whether it leaves a task this CPU.
    pub fn allows(&self, machine: &MachineModel, cpu: usize) -> bool {
        let Some(at) = machine.cpus.get(cpu) else { return false };
        let is = |own: usize, number: u32, of: usize| own == number as usize % of.max(1);
        match self {
            Affinity::Cpus(cpus) => cpus.iter().any(|&c| usize::from(c) == cpu),
            Affinity::Core(n) => is(usize::from(at.core), *n, machine.cores.len()),
            Affinity::Package(n) => is(usize::from(at.package), *n, machine.packages.len()),
        }
    }

    /// Whether the machine has any CPU for the task.
    pub fn fits(&self, machine: &MachineModel) -> bool {
        (0..machine.cpus.len()).any(|c| self.allows(machine, c))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{builtin, file};

    fn allowed(affinity: &Affinity, name: &str) -> Vec<usize> {
        let machine = file::parse(builtin::text(name).expect("bundled"), name).expect("sound");
        (0..machine.cpus.len()).filter(|&c| affinity.allows(&machine, c)).collect()
    }

    /// The notebook of study 002 has two cores of two threads.
    #[test]
    fn cores_and_packages_are_counted_round() {
        let of = |affinity: Affinity| allowed(&affinity, "core-i5-2gen");
        assert_eq!(of(Affinity::Core(0)), [0, 1]);
        assert_eq!(of(Affinity::Core(1)), [2, 3]);
        assert_eq!(of(Affinity::Core(2)), [0, 1]);
        assert_eq!(of(Affinity::Package(1)), [0, 1, 2, 3]);
        assert_eq!(of(Affinity::Cpus(vec![3, 9])), [3]);
        assert_eq!(of(Affinity::Cpus(vec![9])), [] as [usize; 0]);
    }
}
