//! Described machines: a short TOML file becomes a whole tree.
//!
//! A description says what the machine has (packages, cores, threads, speeds, idle states, driver,
//! RAPL zones, battery …) and where each figure comes from (`source` of a section, or `sources` by
//! key). The tree that it makes holds what tools read; which files there are follows the driver and
//! the kernel's release. Impossible figures are refused with one line: the file, the key, why.

mod build;
mod check;
mod format;

use crate::emulated::Emulator;
use format::Description;
use wattwise_figure::mistake::at_line;

/// A description that makes no machine.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// Not the format.
    #[error("{file}: {problem}")]
    Format {
        /// The file.
        file: String,
        /// What is wrong, with the line.
        problem: String,
    },
    /// An impossible figure.
    #[error("{file}: {key}: {problem}")]
    Figure {
        /// The file.
        file: String,
        /// Which figure.
        key: String,
        /// Why it cannot be, and what is expected.
        problem: String,
    },
    /// No such machine.
    #[error("no emulated machine '{name}'; there are: {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
}

macro_rules! bundled {
    ($($name:literal),* $(,)?) => {
        /// Name and text of every bundled description.
        const BUNDLED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../../machines/emulated/", $name, ".toml")))),*];
    };
}

bundled!(
    "amd-laptop",
    "amd-server",
    "arm-big-little",
    "bc10",
    "core-i5-2gen",
    "hybrid-laptop",
    "server-64",
    "server-256",
    "skylake-server-active",
    "skylake-server-passive",
    "thinkpad-r51",
    "vm-2cpu",
);

/// The bundled machines' names.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUNDLED.iter().map(|b| b.0)
}

/// A bundled description's text.
pub fn text(name: &str) -> Option<&'static str> {
    BUNDLED.iter().find(|b| b.0 == name).map(|b| b.1)
}

/// A bundled machine.
///
/// # Errors
/// There is none of this name.
pub fn named(name: &str) -> Result<Emulator, DescriptionError> {
    let text = text(name).ok_or_else(|| DescriptionError::Unknown {
        name: name.to_owned(),
        known: names().collect::<Vec<_>>().join(", "),
    })?;
    from_text(&format!("machines/emulated/{name}.toml"), text)
}

/// A machine from a description; `file` is for messages.
///
/// # Errors
/// The text is not a description, or describes what cannot be.
pub fn from_text(file: &str, text: &str) -> Result<Emulator, DescriptionError> {
    let description: Description = toml::from_str(text).map_err(|e| {
        let problem = at_line(text, e.span().map(|s| s.start), e.message());
        DescriptionError::Format { file: file.to_owned(), problem }
    })?;
    description.check().map_err(|(key, problem)| DescriptionError::Figure {
        file: file.to_owned(),
        key,
        problem,
    })?;
    let (tree, physics) = description.build();
    Ok(Emulator::new(&description.name, tree, physics, description.seed.unwrap_or(1)))
}
