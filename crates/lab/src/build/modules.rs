//! Our kernel modules and the guest's programs, built for one kernel.

use crate::build::kernels::Kernel;
use crate::files::{ProgramRun, read, write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The modules, in the order in which they are built.
pub(crate) const OURS: &[&str] = &["vpower", "cpufreq_burst", "powerctl"];

/// Builds every module against the kernel's headers; any warning is an error.
pub(crate) fn build(root: &Path, lab: &Path, kernel: &Kernel) -> Result<Vec<PathBuf>, String> {
    let mut built = Vec::new();
    // The tree is copied, since kbuild writes beside the sources.
    let tree = lab.join("build").join(&kernel.release);
    mirror(&root.join("kernel"), &tree)?;
    for name in OURS {
        let folder = tree.join(name);
        let ko = folder.join(format!("{name}.ko"));
        let stamp = folder.join(".built");
        if newest_source(&folder)? <= modified(&stamp)
            && newest_source(&tree.join("include"))? <= modified(&stamp)
        {
            built.push(ko);
            continue;
        }
        let mut path = std::env::var_os("PATH").unwrap_or_default();
        if let Some(tools) = &kernel.tools {
            path = format!("{}:{}", tools.display(), path.to_string_lossy()).into();
        }
        let log = ProgramRun::new(
            Command::new("nice")
                .env("PATH", path)
                .args(["make", "-s", "-C"])
                .arg(&kernel.headers)
                .arg(format!("M={}", folder.display()))
                // Type information for BPF wants pahole, and nobody asks these modules for it.
                .arg("CONFIG_DEBUG_INFO_BTF_MODULES=")
                .arg("modules"),
        )
        .output()
        .map_err(|e| format!("{name} on {}: {e}", kernel.release))?;
        let warnings = log.lines().filter(|l| l.contains("warning:") || l.contains("WARNING"));
        // It looks whether pahole is the same, which is not used.
        let warnings: Vec<&str> = warnings.filter(|l| !l.contains("pahole version")).collect();
        if !warnings.is_empty() {
            return Err(format!(
                "{name} on {}: built with warnings:\n{}",
                kernel.release,
                warnings.join("\n")
            ));
        }
        write(&stamp, "")?;
        built.push(ko);
    }
    Ok(built)
}

/// Static programs for the guest, from `lab/guest/*.c`.
pub(crate) fn programs(root: &Path, lab: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let out = lab.join("guest");
    fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let mut programs = Vec::new();
    for path in files(&root.join("lab/guest"))? {
        let (Some(stem), Some("c")) = (path.file_stem(), path.extension().and_then(|e| e.to_str())) else {
            continue;
        };
        let name = stem.to_string_lossy().into_owned();
        let binary = out.join(&name);
        if modified(&path) >= modified(&binary) {
            ProgramRun::new(
                Command::new("cc")
                    .args(["-O2", "-static", "-pthread", "-Wall", "-Wextra", "-Werror", "-std=gnu11"])
                    .arg(format!("-I{}", root.join("kernel/include").display()))
                    .arg("-o")
                    .arg(&binary)
                    .arg(&path),
            )
            .output()?;
        }
        programs.push((name, binary));
    }
    Ok(programs)
}

/// The sched_ext scheduler and its loader, one static program. It wants clang and libbpf, which nothing else does.
pub(crate) fn bpf(root: &Path, lab: &Path) -> Result<(String, PathBuf), String> {
    let out = lab.join("bpf");
    ProgramRun::new(
        Command::new("nice")
            .args(["make", "-s", "-C"])
            .arg(root.join("bpf"))
            .arg(format!("OUT={}", out.display())),
    )
    .output()
    .map_err(|e| {
        format!(
            "bpf: {e}\n  it wants clang-19, bpftool, libbpf-dev, libelf-dev and zlib1g-dev (Debian's names)"
        )
    })?;
    Ok(("coreidle-scx".to_owned(), out.join("coreidle-scx")))
}

/// wattwise and wattwised as the tests have them, without what a debugger wants, and the libraries that it is linked with.
pub(crate) fn product(root: &Path, lab: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Under make what the tests were built of: another choice of packages or features would compile half of them again.
    let set = std::env::var("TEST_SET").unwrap_or_else(|_| "--workspace".to_owned());
    let build = ["build", "--quiet", "--bins"].into_iter().chain(set.split_whitespace());
    ProgramRun::new(Command::new(cargo).args(build).current_dir(root)).output()?;
    let mut found = Vec::new();
    for name in ["wattwise", "wattwised"] {
        let slim = lab.join("guest").join(name);
        let built = crate::target(root).join("debug").join(name);
        ProgramRun::new(Command::new("strip").arg("-o").arg(&slim).arg(&built)).output()?;
        found.push((name.to_owned(), slim));
    }
    // The daemon is linked with no other libraries than the command.
    let linked =
        ProgramRun::new(Command::new("ldd").arg(crate::target(root).join("debug/wattwise"))).output()?;
    // `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)`, or the loader's path alone.
    for path in linked.split_whitespace().filter(|word| word.starts_with('/')) {
        found.push((path.to_owned(), PathBuf::from(path)));
    }
    Ok(found)
}

fn modified(path: &Path) -> Option<std::time::SystemTime> {
    path.metadata().and_then(|m| m.modified()).ok()
}

fn newest_source(folder: &Path) -> Result<Option<std::time::SystemTime>, String> {
    let sources = files(folder)?.into_iter().filter(|p| {
        p.file_name().is_some_and(|n| n == "Kbuild")
            || matches!(p.extension().and_then(|e| e.to_str()), Some("c" | "h"))
                && !p.to_string_lossy().ends_with(".mod.c")
    });
    Ok(sources.filter_map(|p| modified(&p)).max())
}

/// Every file below a folder.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Copies what has changed, and nothing else, so that make sees what is new.
fn mirror(from: &Path, to: &Path) -> Result<(), String> {
    for path in files(from)? {
        let target = to.join(path.strip_prefix(from).map_err(|e| e.to_string())?);
        let text = read(&path)?;
        if fs::read_to_string(&target).ok().as_deref() != Some(text.as_str()) {
            let parent = target.parent().unwrap_or(to);
            fs::create_dir_all(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
            write(&target, &text)?;
        }
    }
    Ok(())
}
