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

/// Parameters that nobody can set on a machine: CPU time of one decision, how the hardware decides by itself, a patch that no kernel has, and speeds
/// that an earlier governor left.
pub(crate) const COST: &str = "cost";
pub(crate) const REACTION: &str = "reaction";
pub(crate) const FULL_AT: &str = "full_at";
pub(crate) const SCALE: &str = "scale";
pub(crate) const HELD: &str = "held";

impl Param {
    /// Whether it can be set on a machine; the others are figures of the model.
    pub fn is_setting(&self) -> bool {
        ![COST, REACTION, FULL_AT, SCALE, HELD].contains(&self.name)
    }
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
    /// A whole number in `min..=max`, some of which have names.
    Scale {
        /// Least value.
        min: u32,
        /// Greatest value.
        max: u32,
        /// Value when nothing is said.
        default: u32,
        /// Names and their values.
        words: &'static [(&'static str, u32)],
    },
}

impl ParamKind {
    /// A value as it is written.
    pub fn show(&self, value: f64) -> String {
        match self {
            ParamKind::Number { .. } => format!("{value}"),
            ParamKind::Choice(words) => words.get(value as usize).copied().unwrap_or_default().into(),
            ParamKind::Scale { words, .. } => match words.iter().find(|(_, v)| f64::from(*v) == value) {
                Some((word, _)) => (*word).into(),
                None => format!("{value}"),
            },
        }
    }

    /// What it takes, in a few words.
    pub fn expected(&self) -> String {
        match self {
            ParamKind::Number { unit, min, max, .. } => format!("a number from {min} to {max} {unit}"),
            ParamKind::Choice(words) => format!("one of {}", words.join(", ")),
            ParamKind::Scale { min, max, words, .. } => {
                let words: Vec<&str> = words.iter().map(|(w, _)| *w).collect();
                format!("{}, or a whole number from {min} to {max}", words.join(", "))
            }
        }
    }

    /// Reads a value.
    fn read(&self, given: &str) -> Option<f64> {
        match self {
            ParamKind::Number { unit, min, max, .. } => {
                in_unit(given, unit).filter(|v| (*min..=*max).contains(v))
            }
            ParamKind::Choice(words) => words.iter().position(|&w| w == given).map(|i| i as f64),
            ParamKind::Scale { min, max, words, .. } => {
                let named = words.iter().find(|(w, _)| *w == given).map(|(_, v)| *v);
                let value = named.or_else(|| given.parse().ok())?;
                (*min..=*max).contains(&value).then_some(f64::from(value))
            }
        }
    }
}

/// Units of one quantity, each in the smallest of them.
const UNITS: [&[(&str, f64)]; 2] = [
    &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)],
    &[("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)],
];

/// How many of `to` are one `from` (`"ms"` in `"us"`: 1000), in any case; none where they measure different things.
pub fn unit_ratio(from: &str, to: &str) -> Option<f64> {
    if from.eq_ignore_ascii_case(to) {
        return Some(1.0);
    }
    let of = |family: &[(&str, f64)], unit: &str| {
        family.iter().find(|(u, _)| u.eq_ignore_ascii_case(unit)).map(|(_, size)| *size)
    };
    UNITS.iter().find_map(|family| Some(of(family, from)? / of(family, to)?))
}

/// A number and the letters after it: `"1.5 ms"` is `(1.5, "ms")`.
pub fn number_and_unit(given: &str) -> Option<(f64, &str)> {
    let given = given.trim();
    if let Ok(number) = given.parse() {
        return Some((number, ""));
    }
    let number = given.trim_end_matches(|c: char| c == '%' || c.is_alphabetic());
    let unit = &given[number.len()..];
    Some((number.trim_end().parse().ok()?, unit))
}

/// A number in `unit`: bare, or with a unit of the same quantity.
fn in_unit(given: &str, unit: &str) -> Option<f64> {
    match number_and_unit(given)? {
        (number, "") => Some(number),
        (number, written) => unit_ratio(written, unit).map(|ratio| number * ratio),
    }
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
    /// A parameter that was set before.
    Twice(
        /// The parameter.
        String,
    ),
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
            SpecError::Twice(param) => write!(f, "{param}: expected once, not twice"),
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
            ParamKind::Scale { default, .. } => f64::from(default),
        };
        Settings { values: params.iter().map(|p| (p.name, value(p))).collect() }
    }

    /// Defaults, then each `key=value` of a comma-separated list.
    pub fn parse(params: &'static [Param], list: &str) -> Result<Settings, SpecError> {
        let mut s = Settings::defaults(params);
        let mut seen: Vec<&str> = Vec::new();
        for pair in list.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or_else(|| SpecError::NotAPair(pair.into()))?;
            let key = key.trim();
            s.set(params, key, value.trim())?;
            if seen.contains(&key) {
                return Err(SpecError::Twice(key.into()));
            }
            seen.push(key);
        }
        Ok(s)
    }

    /// Sets one parameter. A number may carry a unit: its own, or another of the same quantity (`rate_limit=2ms` where the
    /// parameter counts in us).
    pub fn set(&mut self, params: &'static [Param], key: &str, value: &str) -> Result<(), SpecError> {
        let Some(at) = params.iter().position(|p| p.name == key) else {
            return Err(SpecError::UnknownParam {
                given: key.into(),
                known: params.iter().map(|p| p.name).collect(),
            });
        };
        let kind = &params[at].kind;
        self.values[at].1 = kind.read(value).ok_or_else(|| SpecError::BadValue {
            param: params[at].name,
            given: value.into(),
            expected: kind.expected(),
        })?;
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

#[cfg(test)]
mod tests {
    use super::*;

    static PARAMS: &[Param] = &[
        Param {
            name: "wait",
            help: "a time",
            kind: ParamKind::Number { unit: "us", min: 0.0, max: 50_000.0, default: 1.0 },
        },
        Param {
            name: "clock",
            help: "a speed",
            kind: ParamKind::Number { unit: "kHz", min: 0.0, max: 1e7, default: 0.0 },
        },
        Param {
            name: "share",
            help: "a share",
            kind: ParamKind::Number { unit: "%", min: 0.0, max: 100.0, default: 0.0 },
        },
        Param {
            name: "count",
            help: "a count",
            kind: ParamKind::Number { unit: "", min: 0.0, max: 9.0, default: 0.0 },
        },
        Param {
            name: "bias",
            help: "a scale",
            kind: ParamKind::Scale { min: 0, max: 255, default: 128, words: &[("low", 0), ("middle", 128)] },
        },
    ];

    fn value(list: &str) -> Option<f64> {
        let name = list.split('=').next().expect("a name");
        Settings::parse(PARAMS, list).ok().map(|s| s.number(name))
    }

    #[test]
    fn a_value_may_have_any_unit_of_its_quantity() {
        for (given, expected) in [
            ("wait=20", 20.0),
            ("wait=20us", 20.0),
            ("wait=20 us", 20.0),
            ("wait=20ms", 20_000.0),
            ("wait=0.02s", 20_000.0),
            ("wait=500ns", 0.5),
            ("clock=1.2GHz", 1_200_000.0),
            ("clock=800mhz", 800_000.0),
            ("clock=800000", 800_000.0),
            ("share=60%", 60.0),
            ("count=3", 3.0),
        ] {
            assert_eq!(value(given), Some(expected), "{given}");
        }
        for given in
            ["wait=2MHz", "wait=51ms", "clock=3ms", "share=3us", "count=3ms", "wait=ms", "wait=1.2.3us"]
        {
            assert_eq!(value(given), None, "{given}");
        }
    }

    #[test]
    fn a_parameter_is_given_once() {
        assert_eq!(Settings::parse(PARAMS, "wait=20, count=1,wait=20"), Err(SpecError::Twice("wait".into())));
        assert_eq!(format!("{}", SpecError::Twice("wait".into())), "wait: expected once, not twice");
        assert!(Settings::parse(PARAMS, "wait=20,count=1").is_ok());
    }

    #[test]
    fn a_scale_has_words_and_numbers() {
        let kind = PARAMS[4].kind;
        assert_eq!(
            (value("bias=low"), value("bias=255"), value("wait=1")),
            (Some(0.0), Some(255.0), Some(1.0))
        );
        assert_eq!(Settings::defaults(PARAMS).count("bias"), 128);
        assert_eq!((kind.show(128.0), kind.show(102.0)), ("middle".into(), "102".into()));
        for given in ["bias=256", "bias=-1", "bias=1.5", "bias=high"] {
            assert_eq!(value(given), None, "{given}");
        }
    }
}
