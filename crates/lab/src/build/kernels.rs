//! Kernels by package name: downloaded and unpacked under `target/lab`, never installed.
//!
//! ```text
//! 6.1      Debian 12          from the machine's own sources
//! 6.12     its backports      from sources of our own, derived from the machine's: its mirror, another
//! 7.2      Debian unstable    suite, and apt state in target/lab
//! checked  Debian 12's source built here with lab/checked.config
//! ```

use crate::build::packages::{Apt, newest};
use crate::files::{ProgramRun, read, write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A series that the lab knows.
pub(crate) struct Series {
    /// The word on the command line.
    pub(crate) name: &'static str,
    from: KernelOrigin,
    /// Its compiler and build programs need a newer C library than the machine has.
    foreign: bool,
    /// How many times as long as the default one it takes for anything.
    slowness: u32,
}

/// Where a kernel comes from.
enum KernelOrigin {
    /// The machine's own suite.
    Machine,
    /// Another one.
    Suite(&'static str),
    /// Built here from this package of the machine's suite.
    Source(&'static str),
}

impl Series {
    /// The suite that it is taken from, where that is not the machine's own.
    fn suite(&self) -> Option<&'static str> {
        match self.from {
            KernelOrigin::Suite(suite) => Some(suite),
            KernelOrigin::Machine | KernelOrigin::Source(_) => None,
        }
    }
}

/// All of them, the default first.
pub(crate) static SERIES: &[Series] = &[
    Series { name: "6.1", from: KernelOrigin::Machine, foreign: false, slowness: 1 },
    Series { name: "6.12", from: KernelOrigin::Suite("bookworm-backports"), foreign: false, slowness: 1 },
    Series { name: "7.2", from: KernelOrigin::Suite("unstable"), foreign: true, slowness: 1 },
    Series { name: "checked", from: KernelOrigin::Source("linux-source-6.1"), foreign: false, slowness: 5 },
];

/// An unpacked kernel.
pub(crate) struct Kernel {
    pub(crate) release: String,
    pub(crate) image: PathBuf,
    /// `lib/modules/RELEASE`, wherever the packages put it.
    pub(crate) modules: PathBuf,
    /// What `make -C` wants.
    pub(crate) headers: PathBuf,
    /// The compiler and its kind, where the machine's own will not do.
    pub(crate) tools: Option<PathBuf>,
    /// As [`Series`] has it.
    pub(crate) slowness: u32,
}

/// The kernel of a series, from the cache if it is there.
pub(crate) fn get(repository: &Path, lab: &Path, name: &str) -> Result<Kernel, String> {
    let series = SERIES.iter().find(|s| s.name == name).ok_or_else(|| {
        let known: Vec<_> = SERIES.iter().map(|s| s.name).collect();
        format!("--kernel {name}: expected one of {}", known.join(", "))
    })?;
    let root = lab.join(format!("kernel-{name}"));
    let stamp = root.join("release");
    if let KernelOrigin::Source(package) = series.from {
        let config = repository.join("lab").join(format!("{name}.config"));
        if !stamp.exists() || read(&root.join("asked.config"))? != read(&config)? {
            compile(&Apt::new(lab, series.suite())?, package, &config, &root)?;
        }
    } else if !stamp.exists() {
        fetch(lab, series, &root)?;
    }
    let release = read(&stamp)?;
    find(series, &root, release.trim())
}

/// Builds a source package with a configuration over `allnoconfig`, and lays it out as the stock packages are: `boot`,
/// `lib/modules` (none: all is built in) and what modules are built against.
fn compile(apt: &Apt, package: &str, config: &Path, root: &Path) -> Result<(), String> {
    let asked = read(config)?;
    eprintln!("lab: building {package} with {}: some ten minutes, 2 GB", config.display());
    let told = |path: &Path| {
        let path = path.display().to_string();
        move |e: std::io::Error| format!("{path}: {e}")
    };
    let tree = root.join("usr/src").join(package);
    let built = root.join("built");
    let _ = fs::remove_file(root.join("release"));
    fs::create_dir_all(&built).map_err(told(&built))?;
    if !tree.join("Makefile").exists() {
        apt.run("apt-get", &["download", "-q=2", package])?;
        let deb = newest(&apt.folder, package)?;
        ProgramRun::new(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(root)).output()?;
        let archive = root.join("usr/src").join(format!("{package}.tar.xz"));
        ProgramRun::new(Command::new("tar").arg("-C").arg(root.join("usr/src")).arg("-xf").arg(&archive))
            .output()?;
        fs::remove_file(&archive).map_err(told(&archive))?;
    }
    let jobs = format!("-j{}", std::thread::available_parallelism().map_or(1, usize::from));
    let make = |targets: &[&str]| {
        let mut command = Command::new("nice");
        command.args(["make", "-s", &jobs, "-C"]).arg(&tree).arg(format!("O={}", built.display()));
        ProgramRun::new(command.args(targets)).output().map_err(|e| {
            format!("{package}: {e}\n  it wants flex, bison, bc and libelf-dev (Debian's names)")
        })
    };
    make(&["allnoconfig", &format!("KCONFIG_ALLCONFIG={}", config.display())])?;
    // Kconfig drops what lacks something else without a word.
    let found = read(&built.join(".config"))?;
    if let Some(lost) = lost(&asked, &found) {
        return Err(format!("{}: {package} does not take {lost}", config.display()));
    }
    make(&["bzImage", "modules"])?;
    let release = make(&["kernelrelease"])?.trim().to_owned();
    let [boot, modules] = [root.join("boot"), root.join("lib/modules").join(&release).join("kernel")];
    fs::create_dir_all(&boot).map_err(told(&boot))?;
    fs::create_dir_all(&modules).map_err(told(&modules))?;
    let image = boot.join(format!("vmlinuz-{release}"));
    fs::copy(built.join("arch/x86/boot/bzImage"), &image).map_err(told(&image))?;
    let headers = root.join("usr/src").join(format!("linux-headers-{release}"));
    let _ = fs::remove_file(&headers);
    std::os::unix::fs::symlink(&built, &headers).map_err(told(&headers))?;
    write(&root.join("asked.config"), &asked)?;
    write(&root.join("release"), &release)
}

/// The first setting that was asked for and is not there.
fn lost<'a>(asked: &'a str, found: &str) -> Option<&'a str> {
    asked.lines().find(|line| line.starts_with("CONFIG_") && !found.lines().any(|l| l == *line))
}

fn fetch(lab: &Path, series: &Series, root: &Path) -> Result<(), String> {
    eprintln!("lab: getting the {} kernel", series.name);
    let apt = Apt::new(lab, series.suite())?;
    let image = apt
        .depends("linux-image-amd64")?
        .into_iter()
        .find(|p| p.starts_with("linux-image-"))
        .ok_or("linux-image-amd64 depends on no image: run `apt-get update`")?;
    let release = image.trim_start_matches("linux-image-").to_owned();
    if !release.starts_with(&format!("{}.", series.name))
        && !release.starts_with(&format!("{}-", series.name))
    {
        return Err(format!(
            "skipped: the sources' linux-image-amd64 is {release}, not {}: add a suite that has it",
            series.name
        ));
    }
    let headers = format!("linux-headers-{release}");
    let mut wanted = vec![image.clone(), headers.clone()];
    // 6.1: -common and kbuild behind the headers. 7.2: image and modules in packages of their own.
    for package in [&image, &headers] {
        let parts = ["linux-headers-", "linux-kbuild-", "linux-binary-", "linux-modules-", "linux-base-"];
        wanted.extend(apt.depends(package)?.into_iter().filter(|p| parts.iter().any(|x| p.starts_with(x))));
    }
    wanted.sort();
    wanted.dedup();
    let mut args = vec!["download", "-q=2"];
    args.extend(wanted.iter().map(String::as_str));
    apt.run("apt-get", &args)?;

    let _ = fs::remove_dir_all(root);
    fs::create_dir_all(root).map_err(|e| format!("{}: {e}", root.display()))?;
    for package in &wanted {
        let deb = newest(&apt.folder, package)?;
        ProgramRun::new(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(root)).output()?;
    }
    let kernel = find(series, root, &release)?;
    relocate(root, &kernel.headers)?;
    if series.foreign {
        toolchain(&apt, root, &kernel.headers)?;
    }
    // Last: whatever fails above is fetched afresh next time.
    write(&root.join("release"), &release)
}

/// The kernel's own compiler with the libraries that it needs, in `host`; nothing of it is installed.
fn toolchain(apt: &Apt, root: &Path, headers: &Path) -> Result<(), String> {
    let variables = read(&headers.join(".kernelvariables"))?;
    let compiler = variables
        .split_whitespace()
        .find_map(|w| w.strip_prefix("$(CROSS_COMPILE)gcc-"))
        .ok_or("the headers name no compiler")?;
    let host = root.join("host");
    apt.unpack(&format!("gcc-{compiler}-x86-64-linux-gnu"), &host)?;
    for folder in [host.join("usr/bin"), host.join("usr/libexec"), root.join("usr/lib")] {
        wrap(&host, &folder)?;
    }
    Ok(())
}

/// Programs run with the C library beside them: each becomes a script that says so.
fn wrap(host: &Path, folder: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    for path in crate::build::modules::files(folder)? {
        let told = |e: std::io::Error| format!("{}: {e}", path.display());
        let meta = fs::symlink_metadata(&path).map_err(told)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !meta.is_file() || meta.permissions().mode() & 0o111 == 0 || name.contains(".so") {
            continue;
        }
        let bytes = fs::read(&path).map_err(told)?;
        if !bytes.starts_with(b"\x7fELF") || !bytes.windows(9).take(4096).any(|w| w == b"ld-linux-") {
            continue;
        }
        let real = path.with_file_name(format!("{name}.real"));
        fs::rename(&path, &real).map_err(told)?;
        let (host, real) = (host.display(), real.display());
        write(
            &path,
            &format!(
                "#!/bin/sh\nexec {host}/usr/lib64/ld-linux-x86-64.so.2 --argv0 \"$0\" --library-path {host}/usr/lib/x86_64-linux-gnu {real} \"$@\"\n"
            ),
        )?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(told)?;
    }
    Ok(())
}

/// Debian's header makefiles name /usr/src; here they are elsewhere.
fn relocate(root: &Path, headers: &Path) -> Result<(), String> {
    let makefile = headers.join("Makefile");
    let text = read(&makefile)?;
    write(&makefile, &text.replace("/usr/src/", &format!("{}/usr/src/", root.display())))
}

fn find(series: &Series, root: &Path, release: &str) -> Result<Kernel, String> {
    let first = |options: &[String], what: &str| {
        options.iter().map(|o| root.join(o)).find(|p| p.exists()).ok_or_else(|| {
            format!("{}: no {what} for {release}: remove the folder and try again", root.display())
        })
    };
    Ok(Kernel {
        image: first(
            &[format!("boot/vmlinuz-{release}"), format!("usr/lib/modules/{release}/vmlinuz")],
            "kernel image",
        )?,
        modules: first(
            &[format!("usr/lib/modules/{release}/kernel"), format!("lib/modules/{release}/kernel")],
            "modules",
        )?,
        headers: first(&[format!("usr/src/linux-headers-{release}")], "headers")?,
        tools: Some(root.join("host/usr/bin")).filter(|p| p.exists()),
        release: release.to_owned(),
        slowness: series.slowness,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_kconfig_drops_is_found() {
        let asked = "# Checks.\nCONFIG_SMP=y\nCONFIG_KASAN=y\n";
        assert_eq!(lost(asked, "CONFIG_SMP=y\n# CONFIG_KASAN is not set\n"), Some("CONFIG_KASAN=y"));
        assert_eq!(lost(asked, "CONFIG_KASAN=y\nCONFIG_MORE=1\nCONFIG_SMP=y\n"), None);
    }
}
