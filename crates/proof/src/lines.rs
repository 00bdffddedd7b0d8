//! A log of JSON lines: what `ab` and `prove` keep of an experiment.
//!
//! A line is written when the thing has happened and never changed: whatever ends the program leaves all that was measured,
//! and a later go reads it and goes on. Only the last line can be torn.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::{Path, PathBuf};
use wattwise_figure::mistake::of_json_line;
use wattwise_figure::one_line;
use wattwise_output::Log;

/// A log being written.
pub struct Lines {
    log: Log,
    path: PathBuf,
    /// What was written to what cannot be read again: a pipe, a device.
    kept: Vec<u8>,
}

/// Why a log was not begun.
#[derive(Debug, thiserror::Error)]
pub enum NotBegun {
    /// There can be no new file of that name.
    #[error("{0}")]
    Refused(String),
    /// There is one, and its first line cannot be written.
    #[error("{0}")]
    Failed(String),
}

impl Lines {
    /// A new file with its first line; one that is there already is left alone.
    ///
    /// # Errors
    /// It is there, or cannot be written.
    pub fn create(path: &Path, first: &impl Serialize) -> Result<Lines, NotBegun> {
        let at = path.display();
        let refused = |e| format!("{at}: {e}; expected a new file (--resume goes on with an old one)");
        let log = Log::create_new(path).map_err(|e| NotBegun::Refused(refused(e)))?;
        let mut lines = Lines { log, path: path.to_owned(), kept: Vec::new() };
        lines.line(first).map_err(NotBegun::Failed)?;
        Ok(lines)
    }

    /// Goes on with a file after its first `whole` bytes.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn resume(path: &Path, whole: u64, first: &impl Serialize) -> Result<Lines, String> {
        let log = Log::resume(path, whole).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut lines = Lines { log, path: path.to_owned(), kept: Vec::new() };
        lines.line(first)?;
        Ok(lines)
    }

    /// Adds a line, whole or not at all.
    ///
    /// # Errors
    /// The file's path and the system's reason.
    pub fn line(&mut self, line: &impl Serialize) -> Result<(), String> {
        let mut text = serde_json::to_vec(line).map_err(|e| e.to_string())?;
        text.push(b'\n');
        self.log.append(&text).map_err(|e| {
            format!("{}: {e}; all before it is kept, and --resume goes on from there", self.path.display())
        })?;
        if !self.log.is_file() {
            self.kept.extend(text);
        }
        Ok(())
    }

    /// All that was written, read again by `parse`.
    ///
    /// # Errors
    /// The file's path and what is wrong with it.
    pub fn read<T>(&self, parse: impl Fn(&[u8]) -> Result<T, String>) -> Result<T, String> {
        let at = self.path.display();
        let text = match self.log.is_file() {
            true => std::fs::read(&self.path).map_err(|e| format!("{at}: {e}"))?,
            false => self.kept.clone(),
        };
        parse(&text).map_err(|why| format!("{at}: {why}"))
    }
}

/// The lines of a log, each handed on with its number from 1, and the bytes up to the end of the last whole one. Texts that are
/// only shown become one line each, since the file may be a stranger's; those of the fields `used` stay as they are.
///
/// # Errors
/// The first line that is none of `schema`, or what `each` says of one.
pub fn parse<T: DeserializeOwned>(
    text: &[u8],
    (schema, made_by): (&str, &str),
    used: &[&str],
    mut each: impl FnMut(usize, T) -> Result<(), String>,
) -> Result<u64, String> {
    let mut whole = 0;
    for (number, line) in text.split_inclusive(|b| *b == b'\n').enumerate() {
        let parsed = serde_json::from_slice::<T>(line).and_then(|_| shown_in_lines::<T>(line, used));
        let parsed = match parsed {
            Ok(parsed) if line.ends_with(b"\n") => parsed,
            // The torn last line of a killed program: what it told of is done again.
            _ if whole + line.len() == text.len() && number > 0 => break,
            Ok(_) => return Err(format!("line 1: is torn; expected a file made by '{made_by}'")),
            Err(e) => {
                let why = of_json_line(&one_line(&e.to_string()));
                return Err(format!("line {}: {why}; expected a line of {schema}", number + 1));
            }
        };
        whole += line.len();
        each(number + 1, parsed)?;
    }
    Ok(whole as u64)
}

/// A line whose texts that are only shown are one line each.
fn shown_in_lines<T: DeserializeOwned>(line: &[u8], used: &[&str]) -> serde_json::Result<T> {
    fn each(value: &mut Value, used: &[&str]) {
        match value {
            Value::String(text) => *text = one_line(text),
            Value::Array(items) => items.iter_mut().for_each(|v| each(v, used)),
            Value::Object(fields) => {
                fields
                    .iter_mut()
                    .filter(|(name, _)| !used.contains(&name.as_str()))
                    .for_each(|(_, v)| each(v, used));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut value = serde_json::from_slice(line)?;
    each(&mut value, used);
    serde_json::from_value(value)
}
