//! A machine in a file: for bug reports, for looking at later, for the emulator.
//!
//! A capture is a `tar` compressed by zstd, so that any machine can open it and anybody can see what is
//! in it:
//!
//! - `capture.json`: version, kernel, what could not be read and why;
//! - `tree/…`: the files at the first moment, below their own paths;
//! - `registers/cpuN`: registers that were asked for, a line each (`0x19a 0x0`);
//! - `series.jsonl`: with `--for`, the counters over time: a line with their paths, then for each moment
//!   the seconds since the first and the values that changed, by index.
//!
//! **What is in it is listed here** ([`PATHS`]) and nothing else is: no serial number, no host name, no
//! process, no command line beyond the kernel's own parameters about power.

use crate::cpus::set::CpuSet;
use crate::root::played::Played;
use crate::root::tree::{Tree, TreeRoot};
use crate::root::{Access, Node, Root, text};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use wattwise_figure::mistake::of_json;
use wattwise_output::Output;

/// Version of the format.
pub const SCHEMA: &str = "wattwise.capture/1";

/// Everything that a capture may hold. `*` stands for any part of one name.
pub const PATHS: &[&str] = &[
    "sys/devices/system/cpu/{online,offline,possible,present,isolated,nohz_full,kernel_max}",
    "sys/devices/system/cpu/smt/{active,control}",
    "sys/devices/system/cpu/cpuidle/{available_governors,current_driver,current_governor,current_governor_ro}",
    "sys/devices/system/cpu/cpuidle/{low_power_idle_cpu_residency_us,low_power_idle_system_residency_us,intel_c1_demotion}",
    "sys/class/drm/card*/{gt_min_freq_mhz,gt_max_freq_mhz,gt_cur_freq_mhz,gt_act_freq_mhz}",
    "sys/class/drm/card*/power/rc6_residency_ms",
    "sys/class/drm/card*/gt/gt*/{rps_min_freq_mhz,rps_max_freq_mhz,rps_cur_freq_mhz,rps_act_freq_mhz,rc6_residency_ms}",
    "sys/class/drm/card*/device/tile*/gt*/{freq0,gtidle}/{min_freq,max_freq,cur_freq,act_freq,idle_residency_ms}",
    "sys/devices/system/cpu/cpufreq/boost",
    "sys/devices/system/cpu/cpufreq/{ondemand,conservative,schedutil}/*",
    "sys/devices/system/cpu/cpufreq/policy*/*",
    "sys/devices/system/cpu/cpufreq/policy*/{stats,ondemand,conservative,schedutil}/*",
    "sys/devices/system/cpu/{intel_pstate,amd_pstate,umwait_control}/*",
    "sys/devices/system/cpu/intel_uncore_frequency/*/*",
    "sys/class/devfreq/*/{governor,available_governors,available_frequencies,cur_freq,min_freq,max_freq,polling_interval}",
    "sys/class/devfreq/*/{upthreshold,downdifferential}",
    "sys/devices/system/cpu/cpu*/{online,cpu_capacity}",
    "sys/devices/system/cpu/cpu*/topology/*",
    "sys/devices/system/cpu/cpu*/cpuidle/state*/*",
    "sys/devices/system/cpu/cpu*/power/{energy_perf_bias,pm_qos_resume_latency_us}",
    "sys/devices/system/cpu/cpu*/cache/index*/{level,type,size,shared_cpu_list}",
    "sys/devices/system/cpu/cpu*/thermal_throttle/*",
    "sys/devices/system/cpu/cpu*/acpi_cppc/*",
    "sys/devices/system/node/node*/cpulist",
    "sys/devices/{cpu_core,cpu_atom,cpu_lowpower}/cpus",
    "sys/class/powercap/*/{name,enabled,energy_uj,max_energy_range_uj}",
    "sys/class/powercap/*/constraint_*",
    "sys/class/thermal/*/{type,temp,mode,policy,available_policies,cur_state,max_state}",
    "sys/class/thermal/*/trip_point_*",
    "sys/class/hwmon/*/{name,*_input,*_average,*_average_interval,*_label,*_fault,*_enable,*_crit,*_max}",
    "sys/class/hwmon/*/device/{name,*_input,*_average,*_average_interval,*_label,*_fault,*_enable,*_crit,*_max}",
    "sys/class/power_supply/*/{type,usb_type,status,online,present,scope,capacity,capacity_level,technology,cycle_count}",
    "sys/class/power_supply/*/{energy_*,charge_*,voltage_*,current_*,power_*}",
    "sys/class/typec/port*/power_role",
    "sys/firmware/acpi/{platform_profile,platform_profile_choices}",
    "sys/devices/virtual/dmi/id/{sys_vendor,product_name,product_family,board_name,bios_version,bios_date}",
    "sys/firmware/devicetree/base/{model,compatible}",
    "run/wattwise/replaced",
    "proc/cpuinfo",
    "proc/meminfo",
    "proc/stat",
    "proc/cmdline",
    "proc/sys/kernel/osrelease",
];

/// The firmware's tables, where they are asked for.
const ACPI: &[&str] = &["sys/firmware/acpi/tables/{DSDT,SSDT*}", "sys/firmware/acpi/tables/dynamic/SSDT*"];

/// Old kernels keep a real folder in each CPU.
const OLD_CPUFREQ: &[&str] =
    &["sys/devices/system/cpu/cpu*/cpufreq/*", "sys/devices/system/cpu/cpu*/cpufreq/stats/*"];

/// What moves while a machine works.
const MOVING: &[&str] = &[
    "proc/stat",
    "sys/devices/system/cpu/cpu*/cpuidle/state*/{usage,time}",
    "sys/devices/system/cpu/cpufreq/policy*/scaling_cur_freq",
    "sys/devices/system/cpu/cpufreq/policy*/stats/time_in_state",
    "sys/class/powercap/*/energy_uj",
    "sys/class/thermal/thermal_zone*/temp",
    "sys/class/hwmon/*/{temp*_input,power*_input,power*_average,energy*_input}",
    "sys/class/power_supply/*/{energy_now,charge_now,power_now,current_now,voltage_now,online,status}",
];

/// Parts of the kernel's command line that are about power; all others stay out.
const PARAMETERS: &[&str] = &[
    "intel_pstate",
    "amd_pstate",
    "intel_idle",
    "processor",
    "idle",
    "cpuidle",
    "cpufreq",
    "nohz",
    "nohz_full",
    "isolcpus",
    "rcu_nocbs",
    "mitigations",
    "nosmt",
    "maxcpus",
    "nr_cpus",
    "highres",
    "tsc",
    "clocksource",
];

/// The head of a capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// [`SCHEMA`].
    pub schema: String,
    /// Which wattwise made it.
    pub made_by: String,
    /// Files that are there and could not be read: (path, why).
    pub unreadable: Vec<(String, String)>,
    /// Moments in the series.
    pub moments: usize,
}

/// What to take.
#[derive(Debug, Clone, Default)]
pub struct CaptureOptions {
    /// How long to follow the counters; none is one look.
    pub length: Duration,
    /// How often.
    pub every: Duration,
    /// The firmware's ACPI tables too.
    pub acpi: bool,
    /// Registers to read: (CPU, address).
    pub registers: Vec<(u32, u32)>,
}

/// A capture that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// Not opened, not whole, not a capture.
    #[error("{path}: {what}; expected a file made by 'wattwise capture'")]
    Unusable {
        /// The file.
        path: String,
        /// What is wrong.
        what: String,
    },
}

/// The most folders that one pattern finds, and the most that all files hold together: the largest machines, of 8192 CPUs,
/// have two thirds and an eighth of it. In a stranger's tree links can make thousands of folders of one.
const MOST_FOLDERS: usize = 1 << 17;
const MOST_BYTES: usize = 256 << 20;

/// Expands `{a,b}` and `*` against a machine; what is beyond a bound on folders is left out.
pub fn expand(root: &dyn Root, pattern: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let parts: Vec<&str> = split(pattern);
    for (at, part) in parts.iter().enumerate() {
        let last = at + 1 == parts.len();
        let words = alternatives(part);
        let mut next = Vec::new();
        found.truncate(MOST_FOLDERS);
        for folder in &found {
            let join =
                |name: &str| if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            if !last && words.len() == 1 && !words[0].contains('*') {
                next.push(join(words[0]));
                continue;
            }
            for name in root.list(folder).unwrap_or_default() {
                if words.iter().any(|w| matches(w, &name)) {
                    next.push(join(&name));
                }
            }
            if !last && next.len() > MOST_FOLDERS {
                break;
            }
        }
        found = next;
    }
    found
}

/// Splits at `/`, not within braces.
fn split(pattern: &str) -> Vec<&str> {
    let mut depth = 0;
    pattern
        .split(move |c| {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            c == '/' && depth == 0
        })
        .collect()
}

fn alternatives(part: &str) -> Vec<&str> {
    match part.strip_prefix('{').and_then(|p| p.strip_suffix('}')) {
        Some(inner) => inner.split(',').collect(),
        None => vec![part],
    }
}

/// Whether a name fits a word in which `*` stands for anything.
fn matches(word: &str, name: &str) -> bool {
    match word.split_once('*') {
        None => word == name,
        Some((head, tail)) => {
            let Some(rest) = name.strip_prefix(head) else { return false };
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && matches(tail, &rest[at..]))
        }
    }
}

/// The machine's files at this moment, and those that could not be read.
pub fn snapshot(root: &dyn Root, options: &CaptureOptions) -> (Tree, Vec<(String, String)>) {
    let mut tree = Tree::default();
    let mut unreadable = Vec::new();
    let mut left = MOST_BYTES;
    let mut patterns: Vec<&str> = PATHS.to_vec();
    let shared = root
        .list("sys/devices/system/cpu/cpufreq")
        .is_ok_and(|names| names.iter().any(|n| n.starts_with("policy")));
    if !shared {
        patterns.extend(OLD_CPUFREQ);
    }
    if options.acpi {
        patterns.extend(ACPI);
    }
    for pattern in patterns {
        for path in expand(root, pattern) {
            if root.list(&path).is_ok() {
                continue;
            }
            match root.read(&path) {
                Ok(bytes) if bytes.len() > left => {
                    unreadable
                        .push((path, format!("left out: the files are more than {} MiB", MOST_BYTES >> 20)));
                }
                Ok(bytes) => {
                    left -= bytes.len();
                    tree.files.insert(path.clone(), without_private(&path, bytes));
                }
                // Write-only attributes, and those that say that they have nothing to show.
                Err(e) => unreadable.push((path, e.to_string())),
            }
        }
    }
    for folder in ["sys/devices/system/cpu/cpufreq", "sys/class/power_supply", "sys/class/thermal"] {
        if root.list(folder).is_ok_and(|names| names.is_empty()) {
            tree.folders.insert(folder.to_owned());
        }
    }
    if shared {
        for policy in crate::states::cpufreq::folders(root) {
            let name = policy.rsplit('/').next().unwrap_or_default().to_owned();
            let related = text(root, &format!("{policy}/related_cpus")).and_then(|l| CpuSet::parse(&l).ok());
            for cpu in related.unwrap_or_default().iter() {
                let link = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq");
                tree.links.insert(link, format!("../cpufreq/{name}"));
            }
        }
    }
    for &(cpu, address) in &options.registers {
        let device = format!("dev/cpu/{cpu}/msr");
        let value =
            root.open(&device, Access::Read).and_then(|mut n| crate::root::read_register(&mut *n, address));
        match value {
            Ok(value) => {
                tree.registers.insert((cpu, address), value);
            }
            Err(e) => unreadable.push((format!("{device} {address:#x}"), e.to_string())),
        }
    }
    (tree, unreadable)
}

/// A file's content without what is nobody's business.
fn without_private(path: &str, bytes: Vec<u8>) -> Vec<u8> {
    match path {
        "proc/cmdline" => {
            let line = String::from_utf8_lossy(&bytes).into_owned();
            let about_power = |word: &&str| {
                let name = word.split(['=', '.']).next().unwrap_or(word);
                PARAMETERS.contains(&name)
            };
            let kept: Vec<&str> = line.split_whitespace().filter(about_power).collect();
            (kept.join(" ") + "\n").into_bytes()
        }
        // Some boards print their serial number among the processor's facts.
        "proc/cpuinfo" => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let lines = text.lines().filter(|l| !l.to_ascii_lowercase().starts_with("serial"));
            lines.flat_map(|l| [l, "\n"]).collect::<String>().into_bytes()
        }
        _ => bytes,
    }
}

/// Follows attributes over time; each is opened once.
pub struct Sampler {
    paths: Vec<String>,
    nodes: Vec<Box<dyn Node>>,
    last: Vec<Vec<u8>>,
    page: Vec<u8>,
}

impl Sampler {
    /// Opens all that moves on a machine.
    pub fn open(root: &dyn Root) -> Sampler {
        let paths = MOVING.iter().flat_map(|pattern| expand(root, pattern));
        let (paths, nodes): (Vec<String>, Vec<Box<dyn Node>>) =
            paths.filter_map(|path| root.open(&path, Access::Read).ok().map(|node| (path, node))).unzip();
        let last = vec![Vec::new(); paths.len()];
        Sampler { paths, nodes, last, page: vec![0; 64 * 1024] }
    }

    /// What is followed.
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    /// The values that are not as they were at the last look, by index. One that cannot be read any more
    /// (its CPU has gone) is empty.
    pub fn changes(&mut self) -> Vec<(usize, String)> {
        let mut changes = Vec::new();
        for (at, node) in self.nodes.iter_mut().enumerate() {
            let n = node.read_at(0, &mut self.page).unwrap_or(0);
            let now = self.page[..n].trim_ascii();
            if self.last[at] != now {
                self.last[at].clear();
                self.last[at].extend_from_slice(now);
                changes.push((at, String::from_utf8_lossy(now).into_owned()));
            }
        }
        changes
    }
}

/// Captures a machine. The file appears when it is whole. `stop` ends the series early.
pub fn capture(
    root: &dyn Root,
    options: &CaptureOptions,
    mut file: Output,
    stop: &dyn Fn() -> bool,
) -> io::Result<Head> {
    let (tree, unreadable) = snapshot(root, options);
    let mut series = Vec::new();
    let mut moments = 0;
    if !options.length.is_zero() {
        let mut sampler = Sampler::open(root);
        serde_json::to_writer(&mut series, sampler.paths())?;
        series.push(b'\n');
        let start = Instant::now();
        loop {
            let t_s = start.elapsed().as_secs_f64();
            serde_json::to_writer(&mut series, &(t_s, sampler.changes()))?;
            series.push(b'\n');
            moments += 1;
            // On the grid, so that a late look does not delay those after it.
            let next = options.every * moments as u32;
            if next > options.length || stop() {
                break;
            }
            std::thread::sleep(next.saturating_sub(start.elapsed()));
        }
    }
    let made_by = format!("wattwise {}", env!("CARGO_PKG_VERSION"));
    let head = Head { schema: SCHEMA.into(), made_by, unreadable, moments };
    write(&mut file, &head, &tree, &series)?;
    file.finish()?;
    Ok(head)
}

fn write(file: impl Write, head: &Head, tree: &Tree, series: &[u8]) -> io::Result<()> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut add = |name: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, bytes)
    };
    add("capture.json", &serde_json::to_vec_pretty(head)?)?;
    for (path, bytes) in &tree.files {
        add(&format!("tree/{path}"), bytes)?;
    }
    let cpus: std::collections::BTreeSet<u32> = tree.registers.keys().map(|(cpu, _)| *cpu).collect();
    for cpu in cpus {
        let lines: String = tree
            .registers
            .range((cpu, 0)..=(cpu, u32::MAX))
            .map(|((_, address), value)| format!("{address:#x} {value:#x}\n"))
            .collect();
        add(&format!("registers/cpu{cpu}"), lines.as_bytes())?;
    }
    if !series.is_empty() {
        add("series.jsonl", series)?;
    }
    for folder in &tree.folders {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_size(0);
        header.set_mode(0o755);
        tar.append_data(&mut header, format!("tree/{folder}/"), io::empty())?;
    }
    for (link, to) in &tree.links {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        header.set_mode(0o777);
        tar.append_link(&mut header, format!("tree/{link}"), to)?;
    }
    wattwise_packed::pack(tar.into_inner()?.as_slice(), file, 12)
}

/// The most that a capture may unpack to: a 1024-CPU machine's is 60 MB.
const MOST: u64 = 512 << 20;

/// Reads a capture.
pub fn open(path: &Path) -> Result<TreeRoot, CaptureError> {
    let name = path.display().to_string();
    let unusable = |what: String| CaptureError::Unusable { path: name.clone(), what };
    let file = std::fs::File::open(path).map_err(|e| unusable(e.to_string()))?;
    let (_, tree) = read(file).map_err(unusable)?;
    Ok(TreeRoot::new(tree, name.clone()))
}

/// Reads a capture with its series, to be played again.
pub fn play(path: &Path) -> Result<Played, CaptureError> {
    let name = path.display().to_string();
    let unusable = |what: String| CaptureError::Unusable { path: name.clone(), what };
    let file = std::fs::File::open(path).map_err(|e| unusable(e.to_string()))?;
    let (_, tree, series) = read_all(file).map_err(unusable)?;
    Played::new(TreeRoot::new(tree, name.clone()), &series).map_err(unusable)
}

/// Reads a capture's head and tree from bytes; the error says what is wrong with them.
pub fn read(file: impl Read) -> Result<(Head, Tree), String> {
    read_all(file).map(|(head, tree, _)| (head, tree))
}

/// The same with the lines of the series; empty where there is none.
fn read_all(file: impl Read) -> Result<(Head, Tree, Vec<u8>), String> {
    let stream = wattwise_packed::unpack(file).map_err(|e| format!("cannot be unpacked ({e})"))?;
    let mut tar = tar::Archive::new(stream.take(MOST));
    let mut tree = Tree::default();
    let mut head: Option<Head> = None;
    let mut series = Vec::new();
    let cut = |e: io::Error| format!("is damaged or cut short ({e})");
    for entry in tar.entries().map_err(cut)? {
        let mut entry = entry.map_err(cut)?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let kind = entry.header().entry_type();
        let mut content = || -> Result<Vec<u8>, String> {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(cut)?;
            Ok(bytes)
        };
        if path == "capture.json" {
            let parsed: Head = serde_json::from_slice(&content()?).map_err(|e| {
                format!("capture.json: {}; expected the head of a capture", of_json(&e.to_string()))
            })?;
            if parsed.schema != SCHEMA {
                return Err(format!("is of version '{}'; this is {SCHEMA}", parsed.schema));
            }
            head = Some(parsed);
        } else if path == "series.jsonl" {
            series = content()?;
        } else if let Some(path) = path.strip_prefix("tree/") {
            let path = path.trim_end_matches('/').to_owned();
            match kind {
                tar::EntryType::Symlink => {
                    let to = entry.link_name_bytes().ok_or("holds a link to nowhere")?;
                    tree.links.insert(path, String::from_utf8_lossy(&to).into_owned());
                }
                tar::EntryType::Directory => {
                    tree.folders.insert(path);
                }
                _ => {
                    tree.files.insert(path, content()?);
                }
            }
        } else if let Some(cpu) = path.strip_prefix("registers/cpu").and_then(|n| n.parse::<u32>().ok()) {
            for line in String::from_utf8_lossy(&content()?).lines() {
                let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
                let pair =
                    line.split_once(' ').and_then(|(a, v)| Some((u32::try_from(hex(a)?).ok()?, hex(v)?)));
                let (address, value) =
                    pair.ok_or_else(|| format!("{path}: '{line}' is no register and value"))?;
                tree.registers.insert((cpu, address), value);
            }
        }
    }
    // The end of the tar is not the end of the file: the checksum comes last.
    io::copy(&mut tar.into_inner(), &mut io::sink()).map_err(cut)?;
    let head = head.ok_or("holds no capture.json")?;
    Ok((head, tree, series))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        assert!(matches("temp*_input", "temp1_input") && matches("*", "x") && matches("SSDT*", "SSDT"));
        assert!(!matches("temp*_input", "temp1_label") && !matches("cpu", "cpu0"));
        assert_eq!(split("a/{b,c}/d*"), ["a", "{b,c}", "d*"]);
    }

    #[test]
    fn what_is_private_stays_out() {
        let line =
            b"BOOT_IMAGE=/vmlinuz root=UUID=1234 intel_pstate=passive user=me processor.max_cstate=1\n"
                .to_vec();
        assert_eq!(without_private("proc/cmdline", line), b"intel_pstate=passive processor.max_cstate=1\n");
        let info = b"processor: 0\nSerial\t\t: 10000000abcdef\nModel: board\n".to_vec();
        assert_eq!(without_private("proc/cpuinfo", info), b"processor: 0\nModel: board\n");
        assert!(
            PATHS.iter().all(|p| !p.contains("serial") && !p.contains("uuid") && !p.contains("hostname"))
        );
    }

    #[test]
    fn a_tree_goes_through_a_capture_and_a_damaged_one_is_refused() -> Result<(), Box<dyn std::error::Error>>
    {
        let mut tree = Tree::default();
        tree.files.insert("sys/devices/system/cpu/online".into(), b"0-1\n".to_vec());
        tree.files
            .insert("sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq".into(), b"600000\n".to_vec());
        tree.links.insert("sys/devices/system/cpu/cpu0/cpufreq".into(), "../cpufreq/policy0".into());
        tree.folders.insert("sys/class/thermal".into());
        tree.registers.insert((1, 0x19a), 0x1c);
        let head = Head { schema: SCHEMA.into(), made_by: "test".into(), unreadable: Vec::new(), moments: 0 };
        let mut bytes = Vec::new();
        write(&mut bytes, &head, &tree, b"")?;
        let (_, back) = read(&bytes[..])?;
        assert_eq!(back, tree);
        let root = TreeRoot::new(back, "copy");
        assert_eq!(
            text(&root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq").as_deref(),
            Some("600000")
        );
        assert_eq!(root.list("sys/class/thermal")?, Vec::<String>::new());
        let mut node = root.open("dev/cpu/1/msr", Access::Read)?;
        assert_eq!(crate::root::read_register(&mut *node, 0x19a)?, 0x1c);
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut]).is_err(), "cut at {cut} of {}", bytes.len());
        }
        Ok(())
    }
}
