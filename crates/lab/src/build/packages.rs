//! Debian's packages by name: downloaded and unpacked under `target/lab`, never installed.

use crate::files::{ProgramRun, write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Apt with the right sources.
pub(crate) struct Apt {
    options: Vec<String>,
    pub(crate) folder: PathBuf,
}

impl Apt {
    /// The machine's own apt, or, for another suite, one whose sources and state are in `target/lab`.
    pub(crate) fn new(lab: &Path, suite: Option<&str>) -> Result<Apt, String> {
        let folder = lab.join("packages");
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let Some(suite) = suite else { return Ok(Apt { options: Vec::new(), folder }) };
        let state = lab.join(format!("apt-{suite}"));
        for part in ["lists/partial", "cache/archives/partial", "parts"] {
            let path = state.join(part);
            fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        let (mirror, keyring) = mirror().ok_or("no Debian mirror in the machine's apt sources")?;
        let signed = keyring.map_or(String::new(), |k| format!("[signed-by={k}] "));
        let list = state.join("sources.list");
        write(&list, &format!("deb {signed}{mirror} {suite} main\n"))?;
        write(&state.join("status"), "")?;
        let set = |key: &str, value: String| format!("-o{key}={value}");
        let at = |p: &str| state.join(p).display().to_string();
        let options = vec![
            set("Dir::Etc::sourcelist", list.display().to_string()),
            set("Dir::Etc::sourceparts", at("parts")),
            set("Dir::State::lists", at("lists")),
            set("Dir::State::status", at("status")),
            set("Dir::Cache", at("cache")),
            set("Acquire::Languages", "none".into()),
            set("APT::Architecture", "amd64".into()),
        ];
        let apt = Apt { options, folder };
        apt.run("apt-get", &["update", "-q=2"])?;
        Ok(apt)
    }

    /// What one of apt's programs says, called in the download folder.
    pub(crate) fn run(&self, program: &str, args: &[&str]) -> Result<String, String> {
        ProgramRun::new(Command::new(program).args(&self.options).args(args).current_dir(&self.folder))
            .output()
    }

    /// Unpacks a package and all that it depends on into a folder.
    pub(crate) fn unpack(&self, package: &str, into: &Path) -> Result<(), String> {
        let quiet = ["recommends", "suggests", "conflicts", "breaks", "replaces", "enhances"]
            .map(|k| format!("--no-{k}"));
        let mut args = vec!["depends", "--recurse"];
        args.extend(quiet.iter().map(String::as_str));
        args.push(package);
        let text = self.run("apt-cache", &args)?;
        let mut wanted: Vec<&str> =
            text.lines().filter(|l| l.starts_with(|c: char| c.is_ascii_lowercase())).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut args = vec!["download", "-q=2"];
        args.extend(&wanted);
        self.run("apt-get", &args)?;
        for package in wanted {
            let deb = newest(&self.folder, package)?;
            ProgramRun::new(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(into)).output()?;
        }
        Ok(())
    }

    /// Names that a package depends on.
    pub(crate) fn depends(&self, package: &str) -> Result<Vec<String>, String> {
        let text = self.run("apt-cache", &["depends", "--no-recommends", "--no-suggests", package])?;
        Ok(text
            .lines()
            .filter_map(|l| l.trim().strip_prefix("Depends: "))
            .map(|name| name.trim_matches(['<', '>']).to_owned())
            .collect())
    }
}

/// The first plain Debian mirror of the machine's sources, and the keyring beside it.
fn mirror() -> Option<(String, Option<String>)> {
    let mut files: Vec<PathBuf> = fs::read_dir("/etc/apt/sources.list.d")
        .map(|dir| dir.flatten().map(|f| f.path()).collect())
        .unwrap_or_default();
    files.sort();
    files.insert(0, "/etc/apt/sources.list".into());
    files.iter().filter_map(|f| fs::read_to_string(f).ok()).find_map(|text| mirror_of(&text))
}

fn mirror_of(text: &str) -> Option<(String, Option<String>)> {
    let words = || text.lines().filter(|l| !l.trim_start().starts_with('#')).flat_map(str::split_whitespace);
    let url = words().find(|w| w.contains("://") && w.trim_end_matches('/').ends_with("/debian"))?;
    let keyring = words().find(|w| w.starts_with('/') && w.ends_with(".gpg"));
    Some((url.to_owned(), keyring.map(str::to_owned)))
}

/// The newest file of a package in the download folder.
pub(crate) fn newest(folder: &Path, package: &str) -> Result<PathBuf, String> {
    let files = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    files
        .flatten()
        .filter(|f| f.file_name().to_string_lossy().starts_with(&format!("{package}_")))
        .max_by_key(|f| f.metadata().and_then(|m| m.modified()).ok())
        .map(|f| f.path())
        .ok_or_else(|| format!("{package}: apt-get download left no file in {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_is_found_in_both_formats() {
        let deb822 = "Types: deb\n# http://old.example/debian\nURIs: http://mirror.example/debian\nSigned-By: /k.gpg\n";
        assert_eq!(mirror_of(deb822), Some(("http://mirror.example/debian".into(), Some("/k.gpg".into()))));
        let line = "deb http://mirror.example/debian-security bookworm-security main\ndeb http://m.example/debian/ bookworm main\n";
        assert_eq!(mirror_of(line), Some(("http://m.example/debian/".into(), None)));
        assert_eq!(mirror_of("deb https://other.example/apt x main"), None);
    }
}
