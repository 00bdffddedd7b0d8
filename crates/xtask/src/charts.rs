//! Bundles uPlot for the reports.
//!
//! The version and its checksum are fixed by `crates/xtask/charts/package-lock.json`. What comes out is
//! checked in under `crates/page/src/assets/`, so that building wattwise needs no Node.js;
//! `--check` (a CI job) makes sure that nobody edited it by hand and that a new lock came with a new bundle.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Fetches, bundles, and writes, or with `check` compares.
pub(crate) fn run(check: bool) -> Result<(), String> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).ok_or("xtask stands in no repository")?;
    let charts = root.join("crates/xtask/charts");
    let assets = root.join("crates/page/src/assets");

    lock_names_no_host(&read(&charts.join("package-lock.json"))?)?;
    let npm = Command::new("npm")
        .args(["ci", "--no-audit", "--no-fund", "--loglevel=error"])
        .current_dir(&charts)
        .status()
        .map_err(|e| format!("npm: {e}; the charts bundle needs Node.js with npm"))?;
    if !npm.success() {
        return Err(format!("npm ci in {} failed", charts.display()));
    }

    let mut stale = Vec::new();
    for (path, text) in bundle(&charts.join("node_modules/uplot"), &assets)? {
        if check {
            if fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
                stale.push(path.display().to_string());
            }
        } else {
            fs::create_dir_all(&assets).map_err(|e| format!("{}: {e}", assets.display()))?;
            fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
            println!("wrote {}", path.display());
        }
    }
    match stale.is_empty() {
        true => Ok(()),
        false => Err(format!("differs from the lock file: {}; run the chore `charts`", stale.join(", "))),
    }
}

/// The two generated files: licence and version first, then the library's own minified text.
fn bundle(package: &Path, assets: &Path) -> Result<[(PathBuf, String); 2], String> {
    let version = version(&read(&package.join("package.json"))?)?;
    let licence = read(&package.join("LICENSE"))?;
    let header = format!(
        "/*! Generated from the npm package uplot {version} by `cargo xtask charts`: do not edit.\n\n{}\n*/\n",
        licence.trim_end()
    );
    let file = |from: &str, to: &str| -> Result<(PathBuf, String), String> {
        let text = read(&package.join("dist").join(from))?;
        // The reports put the text between <script> or <style> tags as it stands.
        if text.contains("</") {
            return Err(format!("{from} holds `</`, which would end the tag that it is put in"));
        }
        Ok((assets.join(to), format!("{header}{}\n", text.trim_end())))
    };
    Ok([file("uPlot.iife.min.js", "uplot.min.js")?, file("uPlot.min.css", "uplot.min.css")?])
}

/// A lock file that names the registry it was made with binds everybody to that registry.
fn lock_names_no_host(lock: &str) -> Result<(), String> {
    match lock.lines().find(|l| l.contains("\"resolved\"") && l.contains("://")) {
        None => Ok(()),
        Some(line) => Err(format!(
            "package-lock.json names a registry ({}); remake it with the .npmrc beside it",
            line.trim()
        )),
    }
}

/// `"version": "..."` of a package.json.
fn version(package: &str) -> Result<String, String> {
    package
        .lines()
        .find_map(|l| l.trim().strip_prefix("\"version\": \"")?.split('"').next().map(str::to_owned))
        .ok_or_else(|| "the package.json of uplot has no version".to_owned())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_with_a_host_is_refused() {
        assert!(lock_names_no_host(r#""resolved": "https://registry.invalid/uplot.tgz","#).is_err());
        assert!(lock_names_no_host(include_str!("../charts/package-lock.json")).is_ok());
    }

    #[test]
    fn the_version_is_read_from_the_package() {
        assert_eq!(version("{\n  \"version\": \"1.2.3\",\n}").as_deref(), Ok("1.2.3"));
        assert!(version("{}").is_err());
    }
}
