//! A machine's power hardware: what it has, what is set, and what the kernel takes and refuses.
//!
//! ```text
//! root     the one trait through which every file and register is read and written
//! cpus     which CPUs there are: lists, topology, selection, /proc/stat, CPUID
//! states   cpufreq, cpuidle, powercap and sensors, who else writes there
//! rules    what the kernel takes and refuses: validation, --dry-run, the emulator and help come from it
//! acpi     the firmware's tables          msr   registers, their bits, who may be read when
//! capture  a machine as a file            info  everything that can be read, with the reasons for what cannot
//! probe    by which mechanism something was had         clock  time awake and asleep
//! ```
//!
//! This room changes nothing by itself; `control` does. Of wattwise's crates it uses `figure` alone, and knows no
//! model and no policy.

pub mod acpi;
pub mod capture;
pub mod clock;
pub mod cpus;
pub mod identity;
pub mod info;
pub mod msr;
pub mod probe;
pub mod replaced;
pub mod root;
pub mod rules;
pub mod states;
