//! Parameters of a policy: declared once on its item, read from `name:key=value,...` or from a table.

use alloc::{format, string::String, vec::Vec};
use core::fmt;

/// One parameter, as help, documentation and validation see it.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// The word before `=`.
    pub name: &'static str,
    /// What it does, one line.
    pub help: &'static str,
    /// Its values.
    pub kind: ParamKind,
}

/// The values that a parameter may take.
#[derive(Clone, Copy, Debug)]
pub enum ParamKind {
    /// A number in `min..=max` of `unit` (`"ms"`, `"%"`, `"kHz"`, `""` for a plain count).
    Number {
        /// Unit of the value, of the bounds and of the default.
        unit: &'static str,
        /// Least value.
        min: f64,
        /// Greatest value.
        max: f64,
        /// Value when nothing is said.
        default: f64,
    },
    /// One of a few words; the first is the default.
    Choice(&'static [&'static str]),
}

/// Values for every parameter of one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// A value a parameter in declaration order; a choice is its index.
    values: Vec<(&'static str, f64)>,
}

/// What is wrong with a policy's parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum SpecError {
    /// No parameter has that name.
    UnknownParam {
        /// What was written.
        given: String,
        /// The names that exist.
        known: Vec<&'static str>,
    },
    /// Not a number, out of range, or not one of the words.
    BadValue {
        /// The parameter.
        param: &'static str,
        /// What was written.
        given: String,
        /// What it takes.
        expected: String,
    },
    /// Something that is not `key=value`.
    NotAPair(
        /// What was written.
        String,
    ),
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecError::UnknownParam { given, known } if known.is_empty() => {
                write!(f, "'{given}': this policy takes no parameters")
            }
            SpecError::UnknownParam { given, known } => {
                write!(f, "no parameter '{given}': it takes {}", known.join(", "))
            }
            SpecError::BadValue { param, given, expected } => {
                write!(f, "{param}={given}: expected {expected}")
            }
            SpecError::NotAPair(s) => write!(f, "'{s}': expected key=value"),
        }
    }
}

impl core::error::Error for SpecError {}

impl Settings {
    /// Every parameter at its default.
    pub fn defaults(params: &'static [Param]) -> Settings {
        let value = |p: &Param| match p.kind {
            ParamKind::Number { default, .. } => default,
            ParamKind::Choice(_) => 0.0,
        };
        Settings { values: params.iter().map(|p| (p.name, value(p))).collect() }
    }

    /// Defaults, then each `key=value` of a comma-separated list.
    pub fn parse(params: &'static [Param], list: &str) -> Result<Settings, SpecError> {
        let mut s = Settings::defaults(params);
        for pair in list.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or_else(|| SpecError::NotAPair(pair.into()))?;
            s.set(params, key.trim(), value.trim())?;
        }
        Ok(s)
    }

    /// Sets one parameter. A number may carry its own unit (`poll=250ms` where the unit is ms).
    pub fn set(&mut self, params: &'static [Param], key: &str, value: &str) -> Result<(), SpecError> {
        let Some(at) = params.iter().position(|p| p.name == key) else {
            return Err(SpecError::UnknownParam {
                given: key.into(),
                known: params.iter().map(|p| p.name).collect(),
            });
        };
        let bad = |expected| SpecError::BadValue { param: params[at].name, given: value.into(), expected };
        self.values[at].1 = match params[at].kind {
            ParamKind::Number { unit, min, max, .. } => {
                let digits = value.strip_suffix(unit).unwrap_or(value).trim_end();
                match digits.parse::<f64>() {
                    Ok(v) if v >= min && v <= max => v,
                    _ => return Err(bad(format!("a number from {min} to {max} {unit}"))),
                }
            }
            ParamKind::Choice(words) => match words.iter().position(|&w| w == value) {
                Some(i) => i as f64,
                None => return Err(bad(format!("one of {}", words.join(", ")))),
            },
        };
        Ok(())
    }

    /// A number's value in its parameter's unit, or a choice's index.
    ///
    /// # Panics
    /// When the policy's own table has no such parameter: a mistake in this crate, met by its tests.
    pub fn number(&self, name: &str) -> f64 {
        match self.values.iter().find(|(n, _)| *n == name) {
            Some((_, v)) => *v,
            None => panic!("policy reads undeclared parameter {name}"),
        }
    }

    /// A whole number's value.
    pub fn count(&self, name: &str) -> u64 {
        self.number(name) as u64
    }

    /// A parameter in milliseconds, as ns.
    pub fn ms(&self, name: &str) -> u64 {
        (self.number(name) * 1e6) as u64
    }

    /// A parameter in microseconds, as ns.
    pub fn us(&self, name: &str) -> u64 {
        (self.number(name) * 1e3) as u64
    }

    /// The values as written in a spec, for reports: every parameter, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        self.values.iter().copied()
    }
}
