//! Words for people: one line whatever it quotes, and what may have been meant.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a terminal does something at this character instead of showing it: the control characters of Unicode's
/// categories Cc (C0, DEL, C1), Zl and Zp, and those that change the order of what is written (UAX #9) or its form (the
/// deprecated U+206A to U+206F), by which a name can look like another.
pub fn is_acted_on(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}')
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

/// A number and what is counted, in the singular or with an s: `1 comparison`, `3 comparisons`.
pub fn counted(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// The most characters of a line: room for a path as long as Linux allows in a sentence.
const LINE_MOST: usize = 5000;

/// An error, or a cell of a table, as one line: what it quotes may come from a file, and nothing there may break the line or
/// make it longer than anybody reads. (`{:width$}` panics where the width has more than 16 bits.)
pub fn one_line(text: &str) -> String {
    beginning(text, LINE_MOST)
}

/// So many characters of a text in one line, with `…` where it goes on: enough to know a cell of a table by.
pub fn beginning(text: &str, most: usize) -> String {
    let end = text.char_indices().nth(most).map(|(at, _)| at);
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

/// The characters by which a spreadsheet takes a cell for a formula (OWASP, CSV Injection), with their full-width forms.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// A text as a cell of CSV: one line, and where a spreadsheet would calculate it, with `'` before it, as OWASP has it. So is
/// what follows a `;`, by which spreadsheets of half of Europe part cells. Numbers are no text: they stay as they are.
pub fn csv_cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len() + 1);
    let mut begins = true;
    for c in one_line(text).chars() {
        if begins && FORMULA.contains(&c) {
            cell.push('\'');
        }
        // What some program drops or takes for the quote of a cell is no beginning.
        begins = c == ';' || begins && (c.is_whitespace() || c == '"');
        cell.push(c);
    }
    cell
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
        assert!("\u{206a}\u{206f}".chars().all(is_acted_on));
        assert_eq!(one_line(&"ä".repeat(70_000)).chars().count(), LINE_MOST + 1);
    }

    /// The first characters are OWASP's list for CSV injection.
    #[test]
    fn no_text_is_a_formula() {
        for first in ["=", "+", "-", "@", "\t=", "\r=", "\n=", " =", "\u{ff1d}", "\"=", "\u{a0}@"] {
            let cell = csv_cell(&format!("{first}1+1"));
            let shown = cell.trim_start_matches(|c: char| c.is_whitespace() || c == '"');
            assert!(shown.starts_with('\''), "{cell:?}");
        }
        assert_eq!(csv_cell("=cmd|' /C calc'!A0"), "'=cmd|' /C calc'!A0");
        assert_eq!(csv_cell("x;=1+1; -2"), "x;'=1+1; '-2");
        for name in ["schedutil:rate_limit=2ms+max=60%", "xeon-4210", "a, b = c", ""] {
            assert_eq!(csv_cell(name), name);
        }
    }
}
