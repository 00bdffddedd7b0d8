//! Where a command keeps what is not its result: logs of experiments and recordings that nobody named.
//!
//! | who | folder |
//! |---|---|
//! | who sets `XDG_STATE_HOME` | `$XDG_STATE_HOME/wattwise` |
//! | root | `/run/wattwise`, where journals are; `/var/lib/wattwise` for what must outlast a reboot |
//! | anybody else | `~/.local/state/wattwise` |
//!
//! It is the user's own (mode 0700), and no stranger's link leads to it. Root's in `/var/lib` is read by all (mode 0755):
//! this machine's calibration is there.

use crate::exit::Failure;
use rustix::fs::Mode;
use std::path::{Path, PathBuf};
use wattwise_hw::root::folder;

/// Recordings that are kept: the oldest beyond these are removed.
const KEPT: usize = 8;
/// How the names of recordings begin that are kept without having been named.
const RECORDING: &str = "compare-";
/// Root's folder for what must outlast a reboot.
const ALL_USERS: &str = "/var/lib";

fn path(env: impl Fn(&str) -> Option<std::ffi::OsString>, root: Option<&str>) -> Option<PathBuf> {
    let absolute = |name: &str| env(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let of_home = || Some(absolute("HOME")?.join(".local/state"));
    let of_user = absolute("XDG_STATE_HOME").or_else(|| of_home().filter(|_| root.is_none()));
    of_user.or_else(|| root.map(PathBuf::from)).map(|folder| folder.join("wattwise"))
}

/// The folder, which is made if need be. `flag` names a file elsewhere.
///
/// # Errors
/// It cannot be made, or there is no home.
pub(crate) fn folder(flag: &str) -> Result<PathBuf, Failure> {
    folder_of(flag, "/run")
}

/// The folder, where root's is in `of_root`.
fn folder_of(flag: &str, of_root: &str) -> Result<PathBuf, Failure> {
    let is_root = rustix::process::geteuid().is_root();
    let folder = path(|name| std::env::var_os(name), is_root.then_some(of_root)).ok_or_else(|| {
        Failure::input(format!(
            "no folder for logs: HOME is not set; set XDG_STATE_HOME, or name a file with {flag}"
        ))
    })?;
    make(&folder).map_err(|why| {
        Failure::input(format!("{}: {why}; name another file with {flag}", folder.display()))
    })?;
    Ok(folder)
}

fn mode_of(folder: &Path) -> Mode {
    Mode::from_raw_mode(if folder.starts_with(ALL_USERS) { 0o755 } else { 0o700 })
}

/// Makes a folder. One that is there is used as it is, unless others can write it.
fn make(path: &Path) -> Result<(), String> {
    let made = folder::make(path, mode_of(path)).map_err(|e| e.to_string())?;
    let stat = rustix::fs::fstat(&made).map_err(|e| e.to_string())?;
    folder::trusted(stat.st_uid, stat.st_mode, folder::us())
}

/// Seconds since 1970, for names.
pub(crate) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |d| d.as_secs())
}

/// A new log's place.
///
/// # Errors
/// As [`folder`].
pub(crate) fn log(of: &str, flag: &str) -> Result<PathBuf, Failure> {
    Ok(folder(flag)?.join(format!("{of}-{}-{}.jsonl", now(), std::process::id())))
}

/// The same for a log that takes days and goes on after a reboot.
///
/// # Errors
/// As [`folder`].
pub(crate) fn lasting_log(of: &str, flag: &str) -> Result<PathBuf, Failure> {
    Ok(folder_of(flag, ALL_USERS)?.join(format!("{of}-{}-{}.jsonl", now(), std::process::id())))
}

/// A new recording's place. The oldest go, so that there are never many.
///
/// # Errors
/// As [`folder`].
pub(crate) fn recording(flag: &str) -> Result<PathBuf, Failure> {
    let folder = folder(flag)?;
    let names = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let is_ours = |name: &str| name.starts_with(RECORDING) && name.ends_with(".perf");
    let mut old: Vec<PathBuf> =
        names.filter(|e| e.file_name().to_str().is_some_and(is_ours)).map(|e| e.path()).collect();
    // Names have the time: in their order the oldest is first.
    old.sort();
    for path in &old[..(old.len() + 1).saturating_sub(KEPT)] {
        _ = std::fs::remove_file(path);
    }
    Ok(folder.join(format!("{RECORDING}{}-{}.perf", now(), std::process::id())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_can_write_is_refused_and_stays() {
        use std::os::unix::fs::PermissionsExt as _;
        let above = tempfile::tempdir().expect("a folder");
        let at = above.path().join("wattwise");
        assert_eq!(make(&at), Ok(()));
        let mode = || std::fs::metadata(&at).map(|m| m.permissions().mode() & 0o777).expect("made");
        assert_eq!(mode(), 0o700);
        std::fs::set_permissions(&at, std::fs::Permissions::from_mode(0o777)).expect("ours");
        assert!(make(&at).is_err_and(|why| why.contains("others can write it")));
        assert_eq!(mode(), 0o777, "never changed");
    }

    #[test]
    fn what_all_users_find_is_in_a_folder_that_they_can_read() {
        let mode = |of: &str| mode_of(Path::new(of)).as_raw_mode();
        assert_eq!(mode("/var/lib/wattwise"), 0o755);
        assert_eq!(mode("/run/wattwise"), 0o700);
        assert_eq!(mode("/home/a/.local/state/wattwise"), 0o700);
    }

    #[test]
    fn the_folder_is_the_users_state() {
        let of = |set: &[(&str, &str)], root: bool| {
            let root = root.then_some("/run");
            let env = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).into());
            path(env, root).map(|p| p.display().to_string())
        };
        let home = ("HOME", "/home/a");
        assert_eq!(of(&[home], false).as_deref(), Some("/home/a/.local/state/wattwise"));
        assert_eq!(of(&[home, ("XDG_STATE_HOME", "/s")], false).as_deref(), Some("/s/wattwise"));
        assert_eq!(
            of(&[home, ("XDG_STATE_HOME", "s")], false).as_deref(),
            Some("/home/a/.local/state/wattwise")
        );
        assert_eq!(of(&[home], true).as_deref(), Some("/run/wattwise"));
        assert_eq!(of(&[home, ("XDG_STATE_HOME", "/s")], true).as_deref(), Some("/s/wattwise"));
        assert_eq!(of(&[], false), None);
    }
}
