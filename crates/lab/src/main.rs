//! The lab: stock kernels in QEMU with our modules and virtual power hardware.
//!
//! ```text
//! build/kernels   packages -> target/lab/kernel-SERIES     (downloaded, unpacked or built, not installed)
//! build/modules   kernel/ + headers -> .ko                 a warning is an error
//! build/systemd   Debian's systemd and our units, for a guest whose first process it is
//! guest/cpio      busybox, modules, scripts -> initramfs
//! guest           QEMU -> console.log, results.jsonl, recordings
//! scenarios       the table: what runs, on what, and who judges the results
//! judge           a file a judge; what they say is a verdict
//! ```
//!
//! Everything lives under `target/lab`; no root is needed. A scenario is one shell script in
//! `lab/scenarios`, one line in the table, and a list of the checks that must have run in `lab/golden`.

mod build;
mod files;
mod guest;
mod judge;
mod machine;
mod scenarios;
mod verdict;

use build::{kernels, modules, systemd};
use files::{read, write};
use guest::{Accel, Boot, Returned};
use scenarios::{Brings, SCENARIOS, Scenario};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use verdict::JudgeTold;

/// What the command line asked for.
#[derive(Debug, Default)]
struct LabOptions {
    scenarios: Vec<String>,
    /// Only those whose clock follows instructions, or only the others, which want a quiet host.
    instructions: Option<bool>,
    kernel: Option<String>,
    kvm: bool,
    bless: bool,
    build_only: bool,
    again: bool,
    twice: bool,
    list: bool,
}

const USAGE: &str = "lab [SCENARIO...] [--clock instructions|host] [--kernel 6.1|6.12|7.2|checked] [--kvm] [--build-only] \
     [--again] [--twice] [--list] [--bless]";

/// `cargo lab ARGS`.
fn run(args: &[&str]) -> Result<(), String> {
    let options = parse(args)?;
    if options.list {
        for s in SCENARIOS {
            println!("{:<12} {}{}", s.name, s.summary, if s.usual { "" } else { " (only when named)" });
        }
        return Ok(());
    }
    let root = repository()?;
    let lab = target(root).join("lab");
    std::fs::create_dir_all(&lab).map_err(|e| format!("{}: {e}", lab.display()))?;

    let mut chosen: Vec<&Scenario> = Vec::new();
    for name in &options.scenarios {
        let found = SCENARIOS.iter().find(|s| s.name == name);
        chosen.push(found.ok_or_else(|| format!("no scenario `{name}`; `lab --list` names them"))?);
    }
    if chosen.is_empty() {
        chosen.extend(SCENARIOS.iter().filter(|s| s.usual));
    }
    if let Some(instructions) = options.instructions {
        chosen.retain(|s| (s.accel == Accel::Icount) == instructions);
    }
    if chosen.is_empty() {
        return Err("none of these scenarios has that clock; nothing would be checked".into());
    }

    let kernel = kernels::get(root, &lab, options.kernel.as_deref().unwrap_or(kernels::SERIES[0].name))?;
    let ours = modules::build(root, &lab, &kernel)?;
    println!("lab: {} modules built without a warning on {}", ours.len(), kernel.release);
    if options.build_only {
        return Ok(());
    }
    let mut programs = modules::programs(root, &lab)?;
    let brings = |what| chosen.iter().any(|s| s.brings == what);
    if brings(Brings::Product) || brings(Brings::Systemd) {
        programs.extend(modules::product(root, &lab)?);
    }
    if brings(Brings::Scheduler) {
        programs.push(modules::bpf(root, &lab)?);
    }
    let mut with_systemd = programs.clone();
    if brings(Brings::Systemd) {
        with_systemd.extend(systemd::get(root, &lab)?);
    }
    let mut failures = Vec::new();
    for scenario in chosen {
        let programs = if scenario.brings == Brings::Systemd { &with_systemd } else { &programs };
        let one = Lab { root, lab: &lab, kernel: &kernel, ours: &ours, programs, options: &options };
        if let Err(why) = one.scenario(scenario) {
            println!("lab: {} FAILED", scenario.name);
            failures.push(why);
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

fn parse(args: &[&str]) -> Result<LabOptions, String> {
    let mut options = LabOptions::default();
    let mut args = args.iter();
    while let Some(&arg) = args.next() {
        match arg {
            "--kernel" => {
                let value = args.next().ok_or("--kernel wants a series, such as 6.1")?;
                options.kernel = Some((*value).to_owned());
            }
            "--clock" => {
                options.instructions = Some(match args.next() {
                    Some(&"instructions") => true,
                    Some(&"host") => false,
                    _ => return Err("--clock wants instructions or host".into()),
                });
            }
            "--kvm" => options.kvm = true,
            "--bless" => options.bless = true,
            "--again" => options.again = true,
            "--twice" => options.twice = true,
            "--build-only" => options.build_only = true,
            "--list" => options.list = true,
            _ if arg.starts_with('-') => return Err(format!("{arg}: no such flag; usage: {USAGE}")),
            _ => options.scenarios.push(arg.to_owned()),
        }
    }
    Ok(options)
}

/// Cargo's target folder.
fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir))
}

/// Everything a scenario needs.
struct Lab<'a> {
    root: &'a Path,
    lab: &'a Path,
    kernel: &'a kernels::Kernel,
    ours: &'a [PathBuf],
    programs: &'a [(String, PathBuf)],
    options: &'a LabOptions,
}

impl Lab<'_> {
    /// Boots the same once more and holds the kernel against itself.
    fn twice(&self, scenario: &Scenario) -> Result<(), String> {
        let folder = guest::folder(self.lab, scenario.name, &self.kernel.release);
        let once = PathBuf::from(format!("{}.once", folder.display()));
        if !self.options.again {
            let _ = std::fs::remove_dir_all(&once);
            std::fs::rename(&folder, &once).map_err(|e| format!("{}: {e}", once.display()))?;
            self.boot(scenario)?;
        }
        println!("lab: {} against itself:", scenario.name);
        judge::fidelity::repeated(self.root, &once, &folder, guest::cpus(scenario.cpus))?
            .iter()
            .for_each(|line| println!("     {line}"));
        Ok(())
    }

    fn scenario(&self, scenario: &Scenario) -> Result<(), String> {
        let (returned, told) = self.judged(scenario)?;
        self.golden(scenario, &returned.lines, &told.checks)?;
        println!(
            "lab: {} ok on {} ({}, {:.0} s): {} checks",
            scenario.name,
            self.kernel.release,
            returned.accel,
            returned.seconds,
            count(&returned.lines, &told.checks).values().sum::<u64>(),
        );
        for line in &told.figures {
            println!("     {line}");
        }
        write(&returned.folder.join("figures.txt"), &told.figures.join("\n"))?;
        if self.options.twice { self.twice(scenario) } else { Ok(()) }
    }

    /// Boots until one is within its limits, as often as the scenario may.
    fn judged(&self, scenario: &Scenario) -> Result<(Returned, JudgeTold), String> {
        let mut left = if self.options.again { 0 } else { scenario.boots.saturating_sub(1) };
        loop {
            let returned = if self.options.again {
                judge::fidelity::kept(&guest::folder(self.lab, scenario.name, &self.kernel.release))?
            } else {
                self.boot(scenario)?
            };
            match (scenario.judge)(self.root, &returned) {
                Ok(told) => return Ok((returned, told)),
                Err(why) if left > 0 => {
                    println!("lab: {}: {why}\n  another boot decides", scenario.name);
                    left -= 1;
                }
                Err(why) => {
                    return Err(format!("{}: {why}\n  see {}", scenario.name, returned.folder.display()));
                }
            }
        }
    }

    fn boot(&self, scenario: &Scenario) -> Result<Returned, String> {
        let accel =
            if self.options.kvm && scenario.accel == Accel::Tcg { Accel::Kvm } else { scenario.accel };
        let environment = (scenario.environment)(self.root)?;
        guest::boot(
            self.root,
            self.lab,
            &Boot {
                name: scenario.name,
                script: scenario.script,
                kernel: self.kernel,
                ours: self.ours,
                programs: self.programs,
                cpus: scenario.cpus,
                accel,
                append: scenario.append,
                limit: Duration::from_secs(scenario.limit_s) * self.kernel.slowness,
                environment: &environment,
            },
        )
    }

    /// A check that quietly stopped running is a failure: the golden file lists what must have been checked.
    fn golden(&self, scenario: &Scenario, lines: &[Value], checks: &[String]) -> Result<(), String> {
        let found = serde_json::to_string_pretty(&count(lines, checks)).map_err(|e| e.to_string())? + "\n";
        let path = self.root.join(format!("lab/golden/{}.json", scenario.name));
        if self.options.bless {
            let table = guest::folder(self.lab, scenario.name, &self.kernel.release).join("table.md");
            if table.exists() {
                let page = self.root.join(format!("docs/notes/fidelity-{}.md", scenario.name));
                write(&page, &judge::fidelity::page(scenario.name, &self.kernel.release, &read(&table)?))?;
            }
            return write(&path, &found);
        }
        if read(&path)? == found {
            return Ok(());
        }
        Err(format!("{}: the checks that ran differ from {}; found:\n{found}", scenario.name, path.display()))
    }
}

/// How often each check ran.
fn count(lines: &[Value], checks: &[String]) -> BTreeMap<String, u64> {
    let guest = lines.iter().filter_map(|l| l.get("check").and_then(Value::as_str));
    let mut counts = BTreeMap::new();
    for check in guest.chain(checks.iter().map(String::as_str)) {
        *counts.entry(check.to_owned()).or_default() += 1;
    }
    counts
}

fn main() -> std::process::ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("lab: {why}");
            std::process::ExitCode::FAILURE
        }
    }
}

/// The repository, two folders above this crate.
fn repository() -> Result<&'static Path, String> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .ok_or_else(|| "the lab stands in no repository".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line() {
        let o = parse(&["vpower", "--kernel", "6.12", "--kvm"]).expect("valid");
        assert_eq!(
            (o.scenarios.as_slice(), o.kernel.as_deref(), o.kvm),
            (&["vpower".to_owned()][..], Some("6.12"), true)
        );
        assert!(parse(&["--nonsense"]).is_err());
        assert!(parse(&["--kernel"]).is_err());
    }

    #[test]
    fn every_scenario_has_its_script_and_golden_file() {
        let root = repository().expect("a repository");
        for s in SCENARIOS {
            assert!(root.join(format!("lab/scenarios/{}.sh", s.script)).exists(), "{}", s.name);
            assert!(root.join(format!("lab/golden/{}.json", s.name)).exists(), "{}", s.name);
        }
    }
}
