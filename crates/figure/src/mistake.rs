//! What a parser says of a file that people write, in their words: the line, and types by what to write.

use crate::text::suggest;

/// What serde calls a type, and what is to be written for it; a longer name before one that begins it.
const TYPES: [(&str, &str); 16] = [
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number, 0 or more"),
    ("usize", "a whole number, 0 or more"),
    ("i8", "a whole number from -128 to 127"),
    ("i16", "a whole number from -32768 to 32767"),
    ("i32", "a whole number"),
    ("i64", "a whole number"),
    ("f32", "a number"),
    ("f64", "a number"),
    ("a boolean", "true or false"),
    ("a string", "a text in quotes"),
    ("a sequence", "a list in brackets"),
    ("a map", "a table"),
    ("struct ", "a table: "),
];

/// `line 3: ` and the sentence; `at` is where in `text` it was seen, in bytes.
pub fn at_line(text: &str, at: Option<usize>, message: &str) -> String {
    format!("line {}: {}", line(text, at.unwrap_or(0)), sentence(message))
}

/// The number of the line of a place, from 1.
pub fn line(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).matches('\n').count() + 1
}

/// The message on one line, in words for whoever writes such files; of an unknown key also what was probably meant.
pub fn sentence(message: &str) -> String {
    let message = message.trim_end().replace('\n', " ").replace("floating point `", "number `");
    let mut words = message.split('`').skip(1).step_by(2);
    match words.next() {
        Some(given) if message.starts_with("unknown ") => format!("{message}{}", suggest(given, words)),
        _ => match message.rsplit_once("expected ") {
            Some((before, expected)) => format!("{before}expected {}", in_words(expected)),
            None => message,
        },
    }
}

/// What is expected, where it is a type.
fn in_words(expected: &str) -> String {
    let of = |(name, words): &(&str, &str)| {
        let rest = expected.strip_prefix(name)?;
        (rest.is_empty() || name.ends_with(' ') || rest.starts_with(' ')).then(|| format!("{words}{rest}"))
    };
    TYPES.iter().find_map(of).unwrap_or_else(|| expected.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_told_by_what_to_write() {
        for (message, told) in [
            (
                "invalid value: integer `-3`, expected u16",
                "invalid value: integer `-3`, expected a whole number from 0 to 65535",
            ),
            (
                "invalid type: floating point `1.5`, expected u64\n",
                "invalid type: number `1.5`, expected a whole number, 0 or more",
            ),
            ("invalid type: map, expected f64", "invalid type: map, expected a number"),
            ("invalid type: string \"a\", expected f640", "invalid type: string \"a\", expected f640"),
            (
                "invalid type: string \"a\", expected a sequence",
                "invalid type: string \"a\", expected a list in brackets",
            ),
            ("missing field `name`", "missing field `name`"),
            (
                "unknown field `watt`, expected `watts` or `volts`",
                "unknown field `watt`, expected `watts` or `volts`; did you mean \"watts\"?",
            ),
        ] {
            assert_eq!(sentence(message), told);
        }
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!(at_line("a\nb\nc", Some(2), "no"), "line 2: no");
        assert_eq!(at_line("a\nb\nc", None, "no"), "line 1: no");
        // Within a letter of two bytes, and beyond the end.
        assert_eq!(at_line("\né", Some(2), "no"), "line 2: no");
        assert_eq!(at_line("a\n", Some(9), "no"), "line 2: no");
    }
}
