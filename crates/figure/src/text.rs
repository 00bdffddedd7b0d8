//! Words for people: one line whatever it quotes, and what may have been meant.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a terminal does something at this character instead of showing it: the control characters of Unicode's
/// categories Cc (C0, DEL, C1), Zl and Zp, and those that change the order of what is written (UAX #9), by which a
/// name can look like another.
pub fn is_acted_on(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text as it may go to a terminal, whoever wrote it: what a terminal acts on is shown as `\u{1b}`. Lines stay lines.
pub fn on_screen(text: &str) -> Cow<'_, str> {
    // A carriage return alone would write over the line; CSV ends its lines with both (RFC 4180).
    let acts = |at: usize, c: char| match c {
        '\n' | '\t' => false,
        '\r' => !text[at + 1..].starts_with('\n'),
        c => is_acted_on(c),
    };
    if !text.char_indices().any(|(at, c)| acts(at, c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        match acts(at, c) {
            true => _ = write!(shown, "{}", c.escape_unicode()),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// The most characters of a line: room for a path as long as Linux allows in a sentence.
const LINE_MOST: usize = 5000;

/// An error, or a cell of a table, as one line: what it quotes may come from a file, and nothing there may break the line or
/// make it longer than anybody reads. (`{:width$}` panics where the width has more than 16 bits.)
pub fn one_line(text: &str) -> String {
    let end = text.char_indices().nth(LINE_MOST).map(|(at, _)| at);
    let (shown, more) = end.map_or((text, ""), |at| (&text[..at], "…"));
    on_screen(&shown.replace(['\n', '\r', '\t'], " ")).into_owned() + more
}

/// JSON as it may go to a terminal, with the same meaning: what a terminal acts on is written as `\u001b`.
pub fn on_screen_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        // JSON's own line breaks are the only control characters left, and all others are within 16 bits.
        match c != '\n' && is_acted_on(c) {
            true => _ = write!(shown, "\\u{:04x}", u32::from(c)),
            false => shown.push(c),
        }
    }
    shown
}

/// The name among `known` that is most like `given`.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let likeness = |k: &str| (strsim::jaro_winkler(given, k) * 1e9) as u64;
    known.into_iter().max_by_key(|k| likeness(k)).unwrap_or_default().to_owned()
}

/// `; did you mean "watts"?`, or nothing where no known word is near.
pub fn suggest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> String {
    // A third of the letters may be wrong: more than that is another word.
    let near = known
        .map(|k| (strsim::levenshtein(given, k), k))
        .filter(|(d, _)| *d <= given.len().div_ceil(3))
        .min();
    near.map_or_else(String::new, |(_, k)| format!("; did you mean \"{k}\"?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_acts_on_is_left() {
        let foreign = "a\u{1b}]0;t\u{7}b\u{9b}31mc\u{202e}d\u{2066}e\u{7f}\u{85}\u{200f}\r\u{2028}";
        let shown = on_screen(foreign);
        assert!(!shown.contains(is_acted_on), "{shown:?}");
        assert!(shown.starts_with("a\\u{1b}]0;t\\u{7}b\\u{9b}31mc\\u{202e}d"), "{shown}");
        assert_eq!(on_screen("two\nlines\tof µJ – 漢字"), "two\nlines\tof µJ – 漢字");
        assert_eq!(on_screen("a,b\r\nc\rd\r\n"), "a,b\r\nc\\u{d}d\r\n");
        assert_eq!(one_line("a\nb\u{1b}c"), "a b\\u{1b}c");
        assert_eq!(one_line(&"ä".repeat(70_000)).chars().count(), LINE_MOST + 1);
    }
}
