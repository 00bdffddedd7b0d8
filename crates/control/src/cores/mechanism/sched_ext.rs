//! A sched_ext scheduler, by its loader.

use crate::cores::mechanism::files::failed;
use crate::cores::mechanism::way::{Mechanism, MechanismKind, Moved};
use crate::problem::Problem;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use wattwise_hw::cpus::set::CpuSet;

/// What loads the scheduler of `bpf/`.
pub(super) const LOADER: &str = "coreidle-scx";

/// Where it is.
pub(super) fn loader() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(LOADER)).find(|file| file.is_file())
}

/// A scheduler that is loaded and told by its loader; the kernel drops it with that process.
pub(super) struct Scheduler {
    loader: Option<PathBuf>,
    running: Option<Loader>,
    kept: CpuSet,
}

/// The loader's process: it ends when its input does, so with us at the latest.
struct Loader {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Loader {
    fn start(path: &Path, kept: &CpuSet) -> io::Result<Loader> {
        let mut child =
            Command::new(path).arg(kept.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Loader { child, input, output: BufReader::new(output) })
    }

    /// Its next line must be `wanted`.
    fn expect(&mut self, wanted: &str) -> Result<(), Problem> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).map_err(|e| e.to_string());
        let line = line.trim();
        match read {
            Ok(_) if line == wanted => Ok(()),
            Ok(0) => Err(Problem::Failed(format!("{LOADER} has ended; the kernel schedules again"))),
            Ok(_) => Err(Problem::Failed(format!("{LOADER}: {line}"))),
            Err(e) => Err(Problem::Failed(format!("{LOADER}: {e}"))),
        }
    }
}

impl Scheduler {
    /// Without a loader there is nothing to begin, yet what another began has ended with it.
    pub(super) fn new(kept: CpuSet) -> Scheduler {
        Scheduler { loader: loader(), running: None, kept }
    }
}

impl Mechanism for Scheduler {
    fn kind(&self) -> MechanismKind {
        MechanismKind::Scheduler
    }

    fn keep(&mut self, kept: &CpuSet) -> Result<Moved, Problem> {
        use std::io::Write;
        match &mut self.running {
            None => {
                let path = self.loader.as_ref().ok_or_else(|| {
                    Problem::Impossible(format!("{LOADER} is neither beside wattwise nor in PATH"))
                })?;
                let running = Loader::start(path, kept).map_err(|e| failed(path, &e))?;
                self.running.insert(running).expect("ready")?;
            }
            Some(running) => {
                if self.kept != *kept {
                    let told = writeln!(running.input, "mask {kept}");
                    told.map_err(|e| Problem::Failed(format!("{LOADER} has ended: {e}")))?;
                    running.expect("ok")?;
                }
            }
        }
        self.kept = kept.clone();
        Ok(Moved::default())
    }

    fn kept(&self) -> Result<CpuSet, Problem> {
        Ok(self.kept.clone())
    }

    fn lasts(&self) -> bool {
        false
    }

    fn release(&mut self) -> Vec<String> {
        let Some(Loader { mut child, input, .. }) = self.running.take() else { return Vec::new() };
        // The end of its input is its end.
        drop(input);
        child.wait().err().map(|e| format!("{LOADER}: {e}")).into_iter().collect()
    }
}
