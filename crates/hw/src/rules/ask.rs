//! A value that somebody writes, and how the kernel reads numbers and switches.

use super::kernel::{AttributeView, release};
use super::refusal::{NOT_A_NUMBER, NOT_A_SWITCH, OUT_OF_RANGE, Refusal, TOO_LARGE};

/// What an attribute shows after a write that the kernel takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenWrite {
    /// The text, without a newline.
    pub shows: String,
    /// Why this is not what was written, when it is not.
    pub note: Option<&'static str>,
}

pub(super) struct Ask<'a> {
    pub(super) view: &'a dyn AttributeView,
    pub(super) folder: &'a str,
    pub(super) name: &'a str,
    /// As it is written: numbers and switches mind the white space.
    pub(super) raw: &'a str,
    /// Without the white space around it, for words.
    pub(super) value: &'a str,
}

impl Ask<'_> {
    pub(super) fn here(&self, name: &str) -> Option<String> {
        self.view.text(&format!("{}/{name}", self.folder))
    }
    pub(super) fn exists(&self, name: &str) -> bool {
        self.view.list(self.folder).iter().any(|n| n == name)
    }
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        self.here(name)?.parse().ok()
    }
    /// `kstrtouint` with base 0: nothing but a number.
    pub(super) fn whole(&self) -> Result<u32, Refusal> {
        kernel_number(self.raw)?.try_into().map_err(|_| TOO_LARGE)
    }
    /// `sscanf "%u"`: a number with anything after it. What is too large wraps.
    pub(super) fn leading(&self) -> Result<u32, Refusal> {
        scanned(self.raw, self.release()).map(|n| n as u32)
    }
    /// A tunable of `conservative`, which takes nothing but a number in later kernels.
    pub(super) fn conservative(&self) -> Result<u32, Refusal> {
        if self.release() >= LATER { self.whole() } else { self.leading() }
    }
    /// `kstrtobool`: decided by the first letters.
    pub(super) fn switch(&self) -> Result<bool, Refusal> {
        let mut letters = self.raw.chars().map(|c| c.to_ascii_lowercase());
        match (letters.next(), letters.next()) {
            (Some('1' | 'y' | 't'), _) | (Some('o'), Some('n')) => Ok(true),
            (Some('0' | 'n' | 'f'), _) | (Some('o'), Some('f')) => Ok(false),
            (Some('e'), _) if self.release() >= LATER => Ok(true),
            (Some('d'), _) if self.release() >= LATER => Ok(false),
            _ => Err(NOT_A_SWITCH),
        }
    }
    pub(super) fn as_is(&self, n: impl std::fmt::Display) -> Result<TakenWrite, Refusal> {
        let shows = n.to_string();
        let note = (shows != self.value
            && kernel_number(self.value).map(|n| n.to_string()) != Ok(shows.clone()))
        .then_some("the kernel stores it in this form");
        Ok(TakenWrite { shows, note })
    }
    pub(super) fn changed(
        &self,
        n: impl std::fmt::Display,
        note: &'static str,
    ) -> Result<TakenWrite, Refusal> {
        let shows = n.to_string();
        let note = (shows != self.value).then_some(note);
        Ok(TakenWrite { shows, note })
    }
    /// Numbers between two bounds, EINVAL outside.
    pub(super) fn within(&self, min: u32, max: u32) -> Result<TakenWrite, Refusal> {
        match self.leading()? {
            n if n < min || n > max => Err(OUT_OF_RANGE),
            n => self.as_is(n),
        }
    }
    /// One of the words of a file beside it.
    pub(super) fn word_of(&self, choices: &str) -> Option<String> {
        let list = self.here(choices)?;
        list.split_whitespace()
            .map(|w| w.trim_matches(['[', ']']))
            .find(|w| *w == self.value)
            .map(str::to_owned)
    }
    pub(super) fn release(&self) -> (u32, u32) {
        release(self.view)
    }
}

/// `kstrtoull` with base 0: decimal, 0x hexadecimal or 0 octal, and one newline after it.
pub(super) fn kernel_number(text: &str) -> Result<u64, Refusal> {
    let plain = text.strip_prefix('+').unwrap_or(text);
    match plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
        Some(digits) => number(digits, 16),
        None if plain.trim_end().len() > 1 && plain.starts_with('0') => number(&plain[1..], 8),
        None => number(plain, 10),
    }
}

/// The same with base 10.
pub(super) fn decimal(text: &str) -> Result<u64, Refusal> {
    number(text.strip_prefix('+').unwrap_or(text), 10)
}

/// Digits, and one newline after them.
fn number(text: &str, base: u32) -> Result<u64, Refusal> {
    let digits = text.strip_suffix('\n').unwrap_or(text);
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return Err(NOT_A_NUMBER);
    }
    u64::from_str_radix(digits, base).map_err(|_| TOO_LARGE)
}

/// `sscanf "%lu"`: white space, digits, and anything after them. More than 64 bits wrap, in later kernels to the largest number.
pub(super) fn scanned(text: &str, release: (u32, u32)) -> Result<u64, Refusal> {
    let digits = text.trim_start();
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    if end == 0 {
        return Err(NOT_A_NUMBER);
    }
    let wrapping = |n: u64, d: u8| n.wrapping_mul(10).wrapping_add(u64::from(d - b'0'));
    Ok(match digits[..end].parse() {
        Ok(n) => n,
        Err(_) if release >= LATER => u64::MAX,
        Err(_) => digits[..end].bytes().fold(0, wrapping),
    })
}

/// From which release on the two limits are read as nothing but a number. (6.1 does not, 6.12 does.)
const LIMITS_BY_KSTRTOUL: (u32, u32) = (6, 2);

/// From which release on numbers and switches are read as in 7.2. (6.12 does not.)
pub(super) const LATER: (u32, u32) = (7, 0);

/// Which of a policy's two limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// `scaling_min_freq`.
    Min,
    /// `scaling_max_freq`.
    Max,
}

/// A limit as a write gives it.
///
/// # Errors
/// It is no number that the kernel takes.
pub fn limit_khz(value: &str, limit: Limit, release: (u32, u32)) -> Result<u32, Refusal> {
    let n = if release >= LIMITS_BY_KSTRTOUL { kernel_number(value)? } else { scanned(value, release)? };
    // Requests are signed inside (kernel/power/qos.c, freq_qos_value_invalid): -1 takes the request back.
    match (n as i32, limit) {
        (-1, Limit::Min) => Ok(0),
        (-1, Limit::Max) => Ok(i32::MAX as u32),
        (n, _) => n.try_into().map_err(|_| NOT_A_NUMBER),
    }
}
