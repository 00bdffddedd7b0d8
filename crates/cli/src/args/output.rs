//! Paths that commands write to. A flag that names one has the type [`OutputPath`]: it is opened by the one writer
//! (`wattwise_output`), checked against the command's other paths, and found by the tests.

use crate::exit::Failure;
use crate::show::screen;
use clap::{ArgAction, ArgMatches, Command};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use wattwise_live::lines::NotBegun;
use wattwise_output::{Identity, Output, identity};

/// Where an output goes: a file, a pipe, a device, or `-` for standard output.
#[derive(Clone, Debug)]
pub(crate) struct OutputPath(PathBuf);

impl From<OsString> for OutputPath {
    fn from(path: OsString) -> OutputPath {
        OutputPath(path.into())
    }
}

impl From<PathBuf> for OutputPath {
    fn from(path: PathBuf) -> OutputPath {
        OutputPath(path)
    }
}

impl AsRef<Path> for OutputPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl OutputPath {
    /// For logs and recordings, which have writers of their own.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn display(&self) -> std::path::Display<'_> {
        self.0.display()
    }

    /// Whether it is a regular file, or will be one.
    pub(crate) fn is_file(&self) -> bool {
        // What cannot be said is said again when it is opened.
        identity(&self.0).map_or(true, |i| i.is_file())
    }

    /// What is printed from now on does not mix with it.
    pub(crate) fn keep_apart(&self) {
        if matches!(identity(&self.0), Ok(Identity::StandardOutput)) {
            screen::leave_standard_output();
        }
    }

    /// Opens it for a result. Done before the work, and before signals are caught: a pipe waits for its reader.
    pub(crate) fn open(&self, flag: &str) -> Result<OpenOutput, Failure> {
        let name = format!("{flag} {}", self.0.display());
        let out = Output::open(&self.0).map_err(|e| not_opened(&name, e))?;
        self.keep_apart();
        Ok(OpenOutput { name, out })
    }
}

/// Opens what a flag names, if it was given.
pub(crate) fn open(flag: &str, path: Option<&OutputPath>) -> Result<Option<OpenOutput>, Failure> {
    path.map(|path| path.open(flag)).transpose()
}

/// An output that cannot be had.
pub(crate) fn not_opened(name: &str, e: impl std::fmt::Display) -> Failure {
    Failure::input(format!("{name}: {e}; expected a file that can be written"))
}

/// A log that was not begun.
pub(crate) fn not_begun(e: NotBegun) -> Failure {
    match e {
        NotBegun::Refused(_) => Failure::input(e),
        NotBegun::Failed(_) => Failure::work(e),
    }
}

/// A result in the making, and how errors name it.
pub(crate) struct OpenOutput {
    pub(crate) name: String,
    pub(crate) out: Output,
}

impl OpenOutput {
    /// Writes the whole result.
    pub(crate) fn write(mut self, content: &[u8]) -> Result<(), Failure> {
        let written = self.out.write_all(content);
        let done = written.and_then(|()| self.out.finish());
        self::written(&self.name, done)
    }
}

/// What became of writing to an output. A reader of standard output who has gone away ends the program in peace.
pub(crate) fn written<T>(name: &str, result: std::io::Result<T>) -> Result<T, Failure> {
    result.map_err(|e| match e.kind() {
        std::io::ErrorKind::BrokenPipe if name.ends_with(" -") => std::process::exit(0),
        _ => Failure::work(format!("{name}: {e}")),
    })
}

/// Whether an argument names an output.
pub(crate) fn is_output(arg: &clap::Arg) -> bool {
    arg.get_value_parser().type_id() == std::any::TypeId::of::<OutputPath>()
}

/// Flags that print a result instead of text.
const PRINTED: [&str; 3] = ["json", "csv", "markdown"];

/// An output of a call.
struct NamedOutput {
    flag: String,
    /// None for the standard output.
    path: Option<PathBuf>,
    identity: Identity,
}

/// The paths of a call.
#[derive(Default)]
struct Paths {
    outputs: Vec<NamedOutput>,
    /// Words that may be paths: how they are named, and themselves.
    others: Vec<(String, PathBuf)>,
}

/// Refuses two outputs to one place, and an output that would replace an input.
pub(crate) fn check(command: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    let mut paths = Paths::default();
    let (mut command, mut matches) = (command, matches);
    loop {
        paths.take(command, matches);
        let Some((name, deeper)) = matches.subcommand() else { break };
        let Some(below) = command.find_subcommand(name) else { break };
        (command, matches) = (below, deeper);
    }
    paths.check()
}

impl Paths {
    fn take(&mut self, command: &Command, matches: &ArgMatches) {
        for arg in command.get_arguments() {
            let id = arg.get_id().as_str();
            let name = match (arg.get_long(), arg.get_value_names()) {
                (Some(long), _) => format!("--{long}"),
                (None, Some([name, ..])) => name.to_string(),
                (None, _) => id.to_uppercase(),
            };
            if matches!(arg.get_action(), ArgAction::SetTrue) {
                if PRINTED.contains(&id) && matches.get_flag(id) {
                    let identity = Identity::StandardOutput;
                    self.outputs.push(NamedOutput { flag: name, path: None, identity });
                }
                continue;
            }
            let Ok(Some(values)) = matches.try_get_raw(id) else { continue };
            for value in values.map(PathBuf::from) {
                match is_output(arg) {
                    true => {
                        // One that cannot be had is refused when it is opened.
                        if let Ok(identity) = identity(&value) {
                            self.outputs.push(NamedOutput {
                                flag: name.clone(),
                                path: Some(value),
                                identity,
                            });
                        }
                    }
                    // What a command that is run reads and writes is its own affair.
                    false if !arg.is_last_set() => self.others.push((name.clone(), value)),
                    false => {}
                }
            }
        }
    }

    fn check(&self) -> Result<(), Failure> {
        for (at, NamedOutput { flag, path, identity }) in self.outputs.iter().enumerate() {
            if let Some(other) = self.outputs[..at].iter().find(|o| o.identity.clashes(identity)) {
                let other = &other.flag;
                let place = match (identity, path) {
                    (Identity::StandardOutput, _) | (_, None) => "standard output".into(),
                    (_, Some(path)) => path.display().to_string(),
                };
                return Err(Failure::input(format!(
                    "{flag} and {other}: both to {place}; expected different files"
                )));
            }
            let Identity::File { file: Some(file), .. } = identity else { continue };
            if let Some((other, input)) = self.others.iter().find(|(_, input)| is_same_file(input, *file)) {
                return Err(Failure::input(format!(
                    "{flag} {}: would replace what {other} {} reads; expected another file",
                    path.as_deref().unwrap_or(Path::new("")).display(),
                    input.display()
                )));
            }
        }
        Ok(())
    }
}

fn is_same_file(path: &Path, file: (u64, u64)) -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && (m.dev(), m.ino()) == file)
}
