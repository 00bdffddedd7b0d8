//! One boot: an initramfs, QEMU, and what came back.
//!
//! ```text
//! serial 0   the kernel's console, kept in console.log
//! serial 1   results, one JSON object a line, the last {"done": EXIT CODE}
//! /dev/vda   a tar of the guest's /out: recordings, too long for a serial port
//! ```

mod cpio;

use crate::build::kernels::Kernel;
use crate::build::modules::files;
use crate::files::{ProgramRun, read, write};
use cpio::Cpio;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Room for the guest's recordings, in bytes.
const DISK_BYTES: u64 = 256 << 20;

/// An Intel CPU whose clock counter keeps its pace: with another one the kernel listens to changes of
/// speed to correct its clock, and then allows no fast switching.
const CPU: &str = "max,vendor=GenuineIntel,family=6,model=94,stepping=3";

/// Lines of a console log that no run may have.
const COMPLAINTS: &[&str] = &[
    "WARNING:",
    "BUG:",
    "Oops",
    "Kernel panic",
    "rcu: INFO:",
    "self-detected stall",
    "soft lockup",
    "hard LOCKUP",
    "blocked for more than",
    "general protection fault",
    "Call Trace:",
    "scheduling while atomic",
    "sleeping function called",
    "refcount_t:",
    "UBSAN:",
    "new suspected memory leaks",
    // It found no room and gave up, so that it would find nothing.
    "leak detector disabled",
];

/// How the guest's instructions are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accel {
    /// TCG, which every machine has.
    Tcg,
    /// KVM, asked for on the command line: not every /dev/kvm that opens runs a guest.
    Kvm,
    /// A clock that follows the instructions: runs repeat.
    Icount,
}

/// QEMU's CPUs on the instruction clock, and what the kernel must be told of them.
///
/// They take turns, each up to the next timer. QEMU 7.2 gives the one after a full turn none: it is who sees to
/// the timers. Of two CPUs with work the second would never run, and a boot waits for it for ever. So each
/// is followed by one that never starts, which takes that turn; CPUs are in the order of their making, and the
/// kernel, which goes by their number, uses the first half. Each is a package of its own: CPUs that share a cache
/// wake an idle one every few ticks to balance, which is no sleep's end that an idle policy could foresee.
fn take_turns(cpus: usize) -> (Vec<String>, String) {
    if cpus == 1 {
        return (vec!["-smp".into(), "1".into()], String::new());
    }
    let all = 2 * cpus;
    let mut args = vec!["-smp".to_owned(), format!("1,sockets={all},cores=1,threads=1,maxcpus={all}")];
    let order = (0..cpus).flat_map(|cpu| [cpu, cpus + cpu]).skip(1);
    for socket in order {
        args.push("-device".into());
        args.push(format!("max-x86_64-cpu,socket-id={socket},die-id=0,core-id=0,thread-id=0"));
    }
    (args, format!("nr_cpus={cpus}"))
}

/// What to boot.
pub(crate) struct Boot<'a> {
    pub(crate) name: &'a str,
    /// In `lab/scenarios`, without its `.sh`.
    pub(crate) script: &'a str,
    pub(crate) kernel: &'a Kernel,
    pub(crate) ours: &'a [PathBuf],
    pub(crate) programs: &'a [(String, PathBuf)],
    pub(crate) cpus: &'a str,
    pub(crate) accel: Accel,
    pub(crate) append: &'a str,
    pub(crate) limit: Duration,
    /// Values that the scenario's script finds in its environment.
    pub(crate) environment: &'a [(String, String)],
}

/// What came back.
pub(crate) struct Returned {
    /// The lines of serial 1, without the last.
    pub(crate) lines: Vec<Value>,
    /// The folder with the guest's /out, `console.log` and `results.jsonl`.
    pub(crate) folder: PathBuf,
    pub(crate) seconds: f64,
    pub(crate) accel: &'static str,
}

/// Distribution modules that a guest may load, by file name.
const STOCK: &[&str] = &[
    "virtio",
    "virtio_ring",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "virtio_blk",
    "cpufreq_ondemand",
    "cpufreq_conservative",
    "cpufreq_powersave",
    "cpufreq_userspace",
];

fn initramfs(root: &Path, lab: &Path, boot: &Boot<'_>) -> Result<Vec<u8>, String> {
    let mut cpio = Cpio::new();
    for folder in
        ["usr", "usr/bin", "usr/lib", "usr/lib64", "mods", "lab", "proc", "sys", "dev", "tmp", "out"]
    {
        cpio.directory(folder);
    }
    // As Debian has it: all below /usr.
    for (name, to) in [("bin", "usr/bin"), ("sbin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")] {
        cpio.link(name, to);
    }
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].iter().map(Path::new).find(|p| p.exists());
    cpio.copy(
        "usr/bin/busybox",
        busybox.ok_or("no busybox; `sh scripts/tools.sh verify` installs busybox-static")?,
    )?;
    cpio.file("init", read(&root.join("lab/init.sh"))?.as_bytes());
    cpio.copy("lab/lib.sh", &root.join("lab/lib.sh"))?;
    cpio.copy("lab/scenario.sh", &root.join(format!("lab/scenarios/{}.sh", boot.script)))?;
    let environment: String = boot.environment.iter().map(|(k, v)| format!("{k}='{v}'\n")).collect();
    cpio.file("lab/environment", environment.as_bytes());
    for (name, path) in boot.programs {
        match name.strip_prefix('/') {
            // A library, where the loader looks for it, or whatever else has a place of its own.
            Some(whole) => {
                let whole = below_usr(whole);
                let above: Vec<&Path> = Path::new(&whole).ancestors().skip(1).collect();
                above.iter().rev().skip(1).for_each(|folder| cpio.directory(&folder.to_string_lossy()));
                cpio.copy(&whole, path)?;
            }
            None => cpio.copy(&format!("usr/bin/{name}"), path)?,
        }
    }
    for path in boot.ours {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        cpio.copy(&format!("mods/{name}"), path)?;
    }
    let all = files(&boot.kernel.modules)?;
    for name in STOCK {
        // Built in, where it is not there.
        let Some(path) = all.iter().find(|p| module_name(p) == *name) else { continue };
        cpio.file(&format!("mods/{name}.ko"), &unpacked(lab, path)?);
    }
    Ok(cpio.finish())
}

/// A path where `/bin`, `/sbin`, `/lib` and `/lib64` are links into `/usr`.
fn below_usr(whole: &str) -> String {
    match whole.split_once('/') {
        Some(("bin" | "sbin", name)) => format!("usr/bin/{name}"),
        Some(("lib" | "lib64", _)) => format!("usr/{whole}"),
        Some(("usr", rest)) if rest.starts_with("sbin/") => format!("usr/{}", &rest[1..]),
        _ => whole.to_owned(),
    }
}

fn module_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().replace('-', "_")
}

/// A module's bytes: newer kernels ship them packed.
fn unpacked(lab: &Path, path: &Path) -> Result<Vec<u8>, String> {
    let program = match path.extension().and_then(|e| e.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        _ => return fs::read(path).map_err(|e| format!("{}: {e}", path.display())),
    };
    let out = Command::new(program)
        .args(["-dc"])
        .arg(path)
        .current_dir(lab)
        .stderr(Stdio::null())
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    if out.status.success() { Ok(out.stdout) } else { Err(format!("{}: cannot unpack", path.display())) }
}

/// Where a scenario's results are kept.
pub(crate) fn folder(lab: &Path, name: &str, release: &str) -> PathBuf {
    lab.join("runs").join(format!("{name}-{release}"))
}

/// How many CPUs a -smp is.
pub(crate) fn cpus(smp: &str) -> usize {
    smp.split(',').next().and_then(|n| n.parse().ok()).unwrap_or(1)
}

/// Pace of the guest's time-stamp counter: the host's own, or virtual nanoseconds. Told, since a guest on
/// a busy host finds out wrongly, and then its seconds are not seconds.
fn clock_khz(accel: Accel) -> u64 {
    if accel == Accel::Icount {
        return 1_000_000;
    }
    // SAFETY: reading the time-stamp counter has no effect; every x86-64 has it.
    #[cfg(target_arch = "x86_64")]
    let count = || unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    let count = || 0;
    let (from, at) = (count(), Instant::now());
    std::thread::sleep(Duration::from_millis(100));
    (count() - from) * 1_000_000 / at.elapsed().as_nanos().max(1) as u64
}

/// Boots, waits, and brings the results home.
///
/// # Errors
/// When the guest takes too long, says that something failed, or its console has a complaint.
pub(crate) fn boot(root: &Path, lab: &Path, boot: &Boot<'_>) -> Result<Returned, String> {
    let folder = folder(lab, boot.name, &boot.kernel.release);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let at = |name: &str| folder.join(name);
    fs::write(at("initrd"), initramfs(root, lab, boot)?).map_err(|e| format!("initrd: {e}"))?;
    let disk = fs::File::create(at("disk")).map_err(|e| format!("disk: {e}"))?;
    disk.set_len(DISK_BYTES).map_err(|e| format!("disk: {e}"))?;

    let mut qemu = Command::new("nice");
    qemu.args(["qemu-system-x86_64", "-nodefaults", "-no-reboot", "-display", "none", "-m", "1024"]);
    let accel = match boot.accel {
        Accel::Kvm => {
            qemu.args(["-accel", "kvm", "-cpu", "host"]);
            "kvm"
        }
        Accel::Icount => {
            // Several CPUs share one count of instructions: each is to take half the time, that they wait half
            // as long for one another.
            let shift = if cpus(boot.cpus) == 1 { 1 } else { 0 };
            qemu.args(["-accel", "tcg", "-cpu", CPU]);
            qemu.args(["-icount", &format!("shift={shift},sleep=off")]);
            "tcg,icount"
        }
        Accel::Tcg => {
            qemu.args(["-accel", "tcg,thread=multi", "-cpu", CPU]);
            "tcg"
        }
    };
    let (smp, told) = match boot.accel {
        Accel::Icount => take_turns(cpus(boot.cpus)),
        Accel::Tcg | Accel::Kvm => (vec!["-smp".into(), boot.cpus.into()], String::new()),
    };
    qemu.args(smp).arg("-kernel").arg(&boot.kernel.image).arg("-initrd").arg(at("initrd"));
    // no_timer_check: whether the timer's interrupt comes is asked for a moment, in which a busy host may not run QEMU.
    qemu.arg("-append").arg(format!(
        "console=ttyS0 panic=-1 tsc_early_khz={} mitigations=off intel_pstate=disable tsc=reliable nowatchdog no_timer_check loglevel=7 {told} {}",
        clock_khz(boot.accel),
        boot.append
    ));
    qemu.arg("-serial").arg(format!("file:{}", at("console.log").display()));
    qemu.arg("-serial").arg(format!("file:{}", at("results.jsonl").display()));
    qemu.arg("-drive").arg(format!("file={},if=virtio,format=raw,cache=unsafe", at("disk").display()));

    let in_turns = matches!(boot.accel, Accel::Icount) && cpus(boot.cpus) > 1;
    let up = if in_turns { UP_IN_TURNS } else { UP } * boot.kernel.slowness;
    let started = Instant::now();
    let mut late = false;
    for attempt in 1..=BOOTS {
        match one_boot(&mut qemu, &folder, up, boot.limit)? {
            BootEnd::ByItself => break,
            BootEnd::Late => {
                late = true;
                break;
            }
            BootEnd::NeverUp if attempt == BOOTS => {
                let console = at("console.log");
                return Err(format!(
                    "{}: no boot in {BOOTS} got to /init; console log: {}",
                    boot.name,
                    console.display()
                ));
            }
            BootEnd::NeverUp => {
                println!("lab: {}: /init not reached in {} s; booting again", boot.name, up.as_secs())
            }
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let judged = judge(&folder, late.then_some(boot.limit));
    let _ = fs::remove_file(at("initrd"));
    if judged.is_ok() {
        unpack_disk(&folder)?;
    }
    let _ = fs::remove_file(at("disk"));
    let lines = judged
        .map_err(|why| format!("{}: {why}\n  console log: {}", boot.name, at("console.log").display()))?;
    Ok(Returned { lines, folder, seconds, accel })
}

/// How a boot ended.
enum BootEnd {
    ByItself,
    /// It used up the scenario's time.
    Late,
    /// It never reached its first process.
    NeverUp,
}

/// Boots before the lab gives up.
const BOOTS: u32 = 3;
/// Time in which a guest reaches /init: some 4 s, and on a very busy host 25 s. Now and then an emulated
/// guest with several CPUs hangs before that, in the kernel's own set-up, where none of ours is loaded.
const UP: Duration = Duration::from_secs(75);
/// The same where CPUs take turns on the instruction clock: some 20 s, on a busy host several times as much.
const UP_IN_TURNS: Duration = Duration::from_secs(240);

fn one_boot(qemu: &mut Command, folder: &Path, up_in: Duration, limit: Duration) -> Result<BootEnd, String> {
    let log = fs::File::create(folder.join("qemu.log")).map_err(|e| format!("qemu.log: {e}"))?;
    let copy = log.try_clone().map_err(|e| format!("qemu.log: {e}"))?;
    let started = Instant::now();
    let mut child = qemu
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(copy)
        .spawn()
        .map_err(|e| format!("qemu-system-x86_64: {e}; `sh scripts/tools.sh verify` installs it"))?;
    let mut up = false;
    loop {
        if child.try_wait().map_err(|e| format!("qemu: {e}"))?.is_some() {
            return Ok(BootEnd::ByItself);
        }
        if !up && started.elapsed() > up_in {
            let console = fs::read(folder.join("console.log")).unwrap_or_default();
            up = String::from_utf8_lossy(&console).contains("Run /init");
        }
        let never_up = !up && started.elapsed() > up_in;
        if never_up || started.elapsed() > limit {
            // The one that was started above; it has no children.
            let _ = child.kill();
            let _ = child.wait();
            return Ok(if never_up { BootEnd::NeverUp } else { BootEnd::Late });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The guest's own verdict and its console's.
fn judge(folder: &Path, late: Option<Duration>) -> Result<Vec<Value>, String> {
    let console =
        String::from_utf8_lossy(&fs::read(folder.join("console.log")).unwrap_or_default()).into_owned();
    if let Some(line) = console.lines().find(|l| COMPLAINTS.iter().any(|c| l.contains(c))) {
        return Err(format!("the kernel complains: {}", line.trim()));
    }
    let text =
        String::from_utf8_lossy(&fs::read(folder.join("results.jsonl")).unwrap_or_default()).into_owned();
    let mut lines = Vec::new();
    for line in text.lines().filter(|l| !l.trim().is_empty()) {
        lines.push(serde_json::from_str::<Value>(line).map_err(|e| format!("result {line:?}: {e}"))?);
    }
    if let Some(why) = lines.iter().find_map(|l| l.get("fail")) {
        return Err(format!("failed in the guest: {}", why.as_str().unwrap_or_default()));
    }
    if let Some(limit) = late {
        return Err(format!("not done after {} s", limit.as_secs()));
    }
    let tail =
        || console.lines().rev().take(5).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n");
    match lines.pop().and_then(|l| l.get("done").and_then(Value::as_i64)) {
        Some(0) => Ok(lines),
        Some(code) => Err(format!("the scenario's script ended with {code}:\n{}", tail())),
        None => {
            let qemu = read(&folder.join("qemu.log")).unwrap_or_default();
            Err(format!("the guest ended without a verdict:\n{}{}", qemu, tail()))
        }
    }
}

fn unpack_disk(folder: &Path) -> Result<(), String> {
    // An empty disk is no tar: the scenario kept nothing.
    let mut magic = [0; 512];
    {
        use std::io::Read;
        let mut disk = fs::File::open(folder.join("disk")).map_err(|e| format!("disk: {e}"))?;
        disk.read_exact(&mut magic).map_err(|e| format!("disk: {e}"))?;
    }
    if magic.iter().all(|&b| b == 0) {
        return Ok(());
    }
    ProgramRun::new(Command::new("tar").arg("-C").arg(folder).arg("-xf").arg(folder.join("disk")))
        .output()?;
    write(&folder.join("unpacked"), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cpu_on_the_instruction_clock_has_one_behind_it_that_never_starts() {
        let (args, told) = take_turns(2);
        let sockets: Vec<&str> =
            args.iter().filter_map(|a| a.split("socket-id=").nth(1)?.split(',').next()).collect();
        assert_eq!(sockets, ["2", "1", "3"]);
        assert_eq!(
            (args[1].as_str(), told.as_str()),
            ("1,sockets=4,cores=1,threads=1,maxcpus=4", "nr_cpus=2")
        );
        assert_eq!(take_turns(1).1, "");
        assert_eq!(cpus("4,cores=2,threads=2"), 4);
    }
}
