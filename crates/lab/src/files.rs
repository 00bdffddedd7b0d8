//! Programs and files, with errors that say which.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program to run.
pub(crate) struct ProgramRun<'a> {
    command: &'a mut Command,
}

impl<'a> ProgramRun<'a> {
    pub(crate) fn new(command: &'a mut Command) -> ProgramRun<'a> {
        ProgramRun { command }
    }

    /// Both its outputs; an error with their tail if it fails.
    pub(crate) fn output(self) -> Result<String, String> {
        let name = self.command.get_program().to_string_lossy().into_owned();
        let out =
            self.command.stdin(Stdio::null()).output().map_err(|e| {
                format!("{name}: {e}; `sh scripts/tools.sh verify` installs what the lab needs")
            })?;
        let mut text = String::from_utf8_lossy(&out.stdout).into_owned();
        let errors = String::from_utf8_lossy(&out.stderr);
        if out.status.success() {
            text.push_str(&errors);
            return Ok(text);
        }
        let tail: Vec<&str> = text.lines().chain(errors.lines()).collect();
        let tail = &tail[tail.len().saturating_sub(15)..];
        Err(format!("{name} failed ({}):\n{}", out.status, tail.join("\n")))
    }
}

pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
