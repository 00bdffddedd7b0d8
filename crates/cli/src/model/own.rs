//! This machine's calibrated model: where `calibrate` writes it and `this` finds it.
//!
//! | who | written | looked for |
//! |---|---|---|
//! | who sets `XDG_DATA_HOME` | `$XDG_DATA_HOME/wattwise/this.toml` | there, then `/var/lib` |
//! | root | `/var/lib/wattwise/this.toml` | there |
//! | anybody else | `~/.local/share/wattwise/this.toml` | there, then `/var/lib` |
//!
//! A file that is there is of this machine only if it says so: another processor, or another number of CPUs, makes it a
//! model of another machine, as after a disk was moved. Whatever else has changed since (kernel, microcode, mains) is told.

use crate::exit::Failure;
use rustix::fs::Mode;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use wattwise_calibrate::calibration::state_of;
use wattwise_calibrate::estimate::estimate;
use wattwise_calibrate::gather::SeenMachine;
use wattwise_figure::mistake::at_line;
use wattwise_hw::root::Root;
use wattwise_model::machine::{Confidence, MachineModel, is_part_of_name};
use wattwise_replay::library;

const FILE: &str = "wattwise/this.toml";
const ALL_USERS: &str = "/var/lib";

/// Of one user; none for root, or where no home is known.
fn own_folder() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let of_home = || Some(absolute("HOME")?.join(".local/share"));
    let is_root = rustix::process::geteuid().is_root();
    absolute("XDG_DATA_HOME").or_else(|| of_home().filter(|_| !is_root))
}

/// Where a calibration of this machine is written. Its folder is made.
///
/// # Errors
/// The folder cannot be made.
pub(crate) fn to_write() -> Result<PathBuf, Failure> {
    let path = own_folder().unwrap_or_else(|| PathBuf::from(ALL_USERS)).join(FILE);
    let folder = path.parent().unwrap_or(Path::new("/"));
    // Root may have a user's XDG_DATA_HOME: that user's links are not followed.
    wattwise_hw::root::folder::make(folder, Mode::from_raw_mode(0o755))
        .map_err(|e| Failure::input(format!("{}: {e}; name another file with --output", folder.display())))?;
    Ok(path)
}

/// What is known of this machine by a calibration.
pub(crate) enum KeptCalibration {
    /// Nothing.
    Nothing,
    /// Its model, and the file's text.
    Calibrated(Box<MachineModel>, String),
    /// A file that is of another machine, or that this user may not read: why it is not used.
    NotUsed(String),
}

/// The model of this machine that a calibration has written.
///
/// # Errors
/// There is a file that cannot be read, or that is no machine file.
pub(crate) fn kept(root: &dyn Root, seen: &SeenMachine) -> Result<KeptCalibration, Failure> {
    let folders = own_folder().into_iter().chain([PathBuf::from(ALL_USERS)]);
    for path in folders.map(|folder| folder.join(FILE)) {
        let wrong = |e: &dyn std::fmt::Display| {
            Failure::input(format!("{}: {e}; calibrate again, or remove it", path.display()))
        };
        let text = match wattwise_figure::budget::read_text(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                let why = "cannot be read by this user: this machine is estimated.";
                return Ok(KeptCalibration::NotUsed(format!("{} {why}", path.display())));
            }
            Err(e) => return Err(wrong(&e)),
        };
        let text = with_what_is_in_force(&text, seen).map_err(|e| wrong(&e))?;
        let model = library::parsed(&text, &path.display().to_string()).map_err(|e| wrong(&e))?;
        // Without meters a calibration writes the estimate, which can be made anew.
        if model.provenance.iter().any(|f| f.confidence == Confidence::Fitted) {
            return Ok(of_this_machine(model, text, &path, seen, &state_of(root)));
        }
    }
    Ok(KeptCalibration::Nothing)
}

/// A calibrated model with what is in force now: policies change from day to day, watts do not.
fn with_what_is_in_force(text: &str, seen: &SeenMachine) -> Result<String, String> {
    let mut file: toml_edit::DocumentMut = text
        .parse()
        .map_err(|e: toml_edit::TomlError| at_line(text, e.span().map(|s| s.start), e.message()))?;
    let now: toml_edit::DocumentMut =
        estimate(seen, "this").text.parse().map_err(|e: toml_edit::TomlError| e.to_string())?;
    // Nothing measures them: the kernel tells them.
    if let Some(limits) = now.get("power_limit") {
        file.insert("power_limit", limits.clone());
    }
    if let Some(told) = now.get("memory_clock") {
        // Of its power and its waits the kernel tells nothing: what the file says of them stays.
        match file.get_mut("memory_clock").and_then(|t| t.as_table_mut()) {
            None => _ = file.insert("memory_clock", told.clone()),
            Some(table) => {
                for key in ["mhz", "governor", "poll_ms"] {
                    told.get(key).into_iter().for_each(|value| _ = table.insert(key, value.clone()));
                }
            }
        }
    }
    let tables = (file.get_mut("platform").and_then(|t| t.as_table_mut()), now.get("platform"));
    let (Some(platform), Some(now)) = tables else { return Ok(text.to_owned()) };
    for key in ["driver", "governors", "default_policy", "replaced_policies", "idle_policy"] {
        match now.get(key) {
            Some(value) => _ = platform.insert(key, value.clone()),
            None => _ = platform.remove(key),
        }
    }
    Ok(file.to_string())
}

fn of_this_machine(
    mut model: MachineModel,
    text: String,
    path: &Path,
    seen: &SeenMachine,
    now: &[String],
) -> KeptCalibration {
    let path = path.display();
    let processor = seen.processor.as_deref().unwrap_or_default();
    if !model.cpu_names.iter().any(|name| is_part_of_name(name, processor)) {
        return KeptCalibration::NotUsed(format!(
            "{path} is of another processor: this machine is estimated. Calibrate it."
        ));
    }
    if model.cpus.len() != seen.cpus() {
        return KeptCalibration::NotUsed(format!(
            "{path} has {} CPUs and this machine {}: it is estimated. Calibrate it.",
            model.cpus.len(),
            seen.cpus()
        ));
    }
    let changed = changed(&model.state, now);
    if !changed.is_empty() {
        model.notes.push(format!("Since the calibration ({path}) this has changed: {}.", changed.join(", ")));
    }
    KeptCalibration::Calibrated(Box::new(model), text)
}

/// What is said now of the same things in other words.
fn changed(then: &[String], now: &[String]) -> Vec<String> {
    let what = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
    let other = |line: &&String| now.iter().all(|n| n != *line) && now.iter().any(|n| what(n) == what(line));
    let pair = |line: &String| {
        let new = now.iter().find(|n| what(n) == what(line)).map_or("", String::as_str);
        format!("{line}, now {new}")
    };
    then.iter().filter(other).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_calibrate::gather::SeenMemory;

    fn lines(of: &[&str]) -> Vec<String> {
        of.iter().map(|&s| s.to_owned()).collect()
    }

    /// The estimate of an emulated machine, as if it were that one's calibration.
    fn judged(of: &str, on: &str, state: &str, now: &[&str]) -> KeptCalibration {
        let seen = |name: &str| SeenMachine::read(&wattwise_emulator::named(name).unwrap()).unwrap();
        let text = estimate(&seen(of), "this").text;
        let text = format!("state = [{state}]\n{text}");
        let model = library::parsed(&text, "this").unwrap();
        of_this_machine(model, text, Path::new("this.toml"), &seen(on), &lines(now))
    }

    #[test]
    fn a_kept_model_is_of_the_machine_that_it_names() {
        let KeptCalibration::Calibrated(model, _) =
            judged("hybrid-laptop", "hybrid-laptop", "", &["kernel 6.1"])
        else {
            panic!("its own")
        };
        let before = model.notes.len();
        let KeptCalibration::Calibrated(model, _) = judged(
            "hybrid-laptop",
            "hybrid-laptop",
            "'kernel 6.1', 'on mains', 'driver x'",
            &["kernel 6.12", "on mains"],
        ) else {
            panic!("its own")
        };
        assert_eq!(model.notes.len(), before + 1);
        assert!(model.notes[before].ends_with("kernel 6.1, now kernel 6.12."), "{}", model.notes[before]);
        let KeptCalibration::NotUsed(why) = judged("hybrid-laptop", "core-i5-2gen", "", &[]) else {
            panic!("another's")
        };
        assert!(why.contains("another processor"), "{why}");
        let KeptCalibration::NotUsed(why) = judged("server-64", "server-256", "", &[]) else {
            panic!("another's")
        };
        assert!(why.contains("this machine"), "{why}");
    }

    #[test]
    fn a_calibrated_model_has_the_policy_that_is_in_force_now() {
        let machine = wattwise_emulator::named("skylake-server-active").unwrap();
        let then = SeenMachine::read(&machine).unwrap();
        let calibrated = estimate(&then, "this").text + "\n# measured\n";
        let now = SeenMachine {
            policy: Some("hwp:epp=power+max=60%".to_owned()),
            replaced: vec!["performance".to_owned()],
            ..then.clone()
        };
        let text = with_what_is_in_force(&calibrated, &now).unwrap();
        let model = library::parsed(&text, "this").unwrap();
        assert_eq!(model.default_policy, "hwp:epp=power+max=60%");
        assert_eq!(model.replaced_policies, ["performance"]);
        let back = library::parsed(&with_what_is_in_force(&text, &then).unwrap(), "this").unwrap();
        assert_eq!(Some(back.default_policy), then.policy);
        assert!(back.replaced_policies.is_empty());
        assert!(text.contains("# measured\n"), "{text}");
        // One from before the memory's clock was read.
        let clock = |governor: &str| SeenMemory {
            clocks_khz: vec![2_112_000, 528_000],
            governor: governor.to_owned(),
            polling_ms: None,
        };
        let pinned = SeenMachine {
            policy: then.policy.clone().map(|policy| policy + "+dram=performance"),
            memory: Some(clock("dmc_ondemand")),
            ..then.clone()
        };
        let model = library::parsed(&with_what_is_in_force(&calibrated, &pinned).unwrap(), "this").unwrap();
        assert_eq!(model.memory_clock.map(|c| c.governor).as_deref(), Some("dmc_ondemand"));
        // A calibration from before the limits of power were read, and one that was lowered since.
        let bare: String = calibrated.split("[power_limit]").next().unwrap().to_owned();
        let now = SeenMachine { policy: then.policy.map(|policy| policy + "+power=15W"), ..now };
        let lowered = library::parsed(&with_what_is_in_force(&bare, &now).unwrap(), "this").unwrap();
        assert!(lowered.default_policy.ends_with("+power=15W") && lowered.packages[0].limit.is_some());
    }
}
