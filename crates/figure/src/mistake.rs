//! What a parser says of a file that people write, in their words: the line, and types by what to write.

use crate::text::suggest;

/// What serde calls a type, and what is to be written for it.
const TYPES: [(&str, &str); 18] = [
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number, 0 or more"),
    ("usize", "a whole number, 0 or more"),
    ("nonzero u32", "a whole number above 0"),
    ("i8", "a whole number from -128 to 127"),
    ("i16", "a whole number from -32768 to 32767"),
    ("i32", "a whole number"),
    ("i64", "a whole number"),
    ("f32", "a number"),
    ("f64", "a number"),
    ("a boolean", "true or false"),
    ("a string", "a text in quotes"),
    ("string only", "a word in quotes"),
    ("a sequence", "a list in brackets"),
    ("a map", "a table"),
    ("map with a single key", "a table of one key"),
];
/// What serde and the parser call what they found, or say in words of their own, and what stands for it.
const FOUND: [(&str, &str); 11] = [
    ("invalid type: map", "invalid type: a table"),
    ("invalid type: sequence", "invalid type: a list"),
    ("invalid type: unit variant", "invalid type"),
    ("invalid type: boolean `", "invalid type: `"),
    ("invalid type: integer `", "invalid type: `"),
    ("invalid type: floating point `", "invalid type: `"),
    ("invalid type: string \"", "invalid type: \""),
    ("invalid value: integer `", "invalid value: `"),
    ("unknown variant `", "unknown word `"),
    ("wanted string or table", "expected a word in quotes"),
    ("wanted exactly 1 element, found 0 elements", "expected a word in quotes"),
];

/// `line 3: ` and the sentence; `at` is where in `text` it was seen, in bytes.
pub fn at_line(text: &str, at: Option<usize>, message: &str) -> String {
    format!("line {}: {}", line(text, at.unwrap_or(0)), sentence(message))
}

/// The number of the line of a place, from 1.
pub fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|b| *b == b'\n').count() + 1
}

/// The message on one line, in words for whoever writes such files; of an unknown key also what was probably meant.
pub fn sentence(message: &str) -> String {
    let mut message = message.trim_end().replace('\n', " ");
    for (theirs, ours) in FOUND {
        message = message.replace(theirs, ours);
    }
    let mut words = message.split('`').skip(1).step_by(2);
    match words.next() {
        Some(given) if message.starts_with("unknown ") => format!("{message}{}", suggest(given, words)),
        _ => match message.rsplit_once("expected ") {
            Some((before, expected)) => format!("{before}expected {}", in_words(expected)),
            None => message,
        },
    }
}

/// What a parser of JSON says, in such words, after its line where it knows one.
pub fn of_json(message: &str) -> String {
    match message.rsplit_once(" at line ").and_then(|(_, at)| at.split_once(" column ")) {
        Some((line, _)) => format!("line {line}: {}", of_json_line(message)),
        None => of_json_line(message),
    }
}

/// The same of a text that is a line of its own.
pub fn of_json_line(message: &str) -> String {
    /// Mistakes in what was written; all else is in how.
    const IN_VALUES: [&str; 4] = ["invalid type: ", "invalid value: ", "invalid length ", "unknown "];
    const OF_FIELDS: [&str; 2] = ["missing field ", "duplicate field "];
    let place = message.rsplit_once(" at line ");
    let said = place.map_or(message, |(said, _)| said);
    match said {
        _ if IN_VALUES.iter().chain(&OF_FIELDS).any(|mistake| said.starts_with(mistake)) => {
            sentence(said).replace("a table", "an object")
        }
        _ if said.starts_with("EOF ") => "ends too early".to_owned(),
        _ if said.starts_with("recursion limit ") => "is nested too deeply".to_owned(),
        // What a type of ours says has no place of its own in the text.
        _ if place.is_none() => said.to_owned(),
        _ => "is no JSON".to_owned(),
    }
}

/// What is expected, where it is a type.
fn in_words(expected: &str) -> String {
    if expected.starts_with("struct ") {
        return "a table".to_owned();
    }
    let of = |text: &str| TYPES.iter().find(|(name, _)| *name == text).map(|(_, words)| (*words).to_owned());
    let list = || Some(format!("a list of {}", expected.strip_prefix("an array of length ")?));
    of(expected).or_else(list).unwrap_or_else(|| expected.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_told_by_what_to_write() {
        for (message, told) in [
            (
                "invalid value: integer `-3`, expected u16",
                "invalid value: `-3`, expected a whole number from 0 to 65535",
            ),
            (
                "invalid type: floating point `1.5`, expected u64\n",
                "invalid type: `1.5`, expected a whole number, 0 or more",
            ),
            ("invalid type: map, expected f64", "invalid type: a table, expected a number"),
            ("invalid type: string \"a\", expected f640", "invalid type: \"a\", expected f640"),
            (
                "invalid type: integer `5`, expected struct TopologyTable with 7 elements",
                "invalid type: `5`, expected a table",
            ),
            ("invalid length 3, expected an array of length 2", "invalid length 3, expected a list of 2"),
            (
                "unknown variant `cor`, expected `core`",
                "unknown word `cor`, expected `core`; did you mean \"core\"?",
            ),
            (
                "invalid type: string \"a\", expected a sequence",
                "invalid type: \"a\", expected a list in brackets",
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
    fn a_mistake_in_json_is_told_by_line_and_what_to_write() {
        for (message, told) in [
            ("expected value at line 1 column 1", "line 1: is no JSON"),
            ("trailing characters at line 3 column 7", "line 3: is no JSON"),
            ("EOF while parsing a string at line 9 column 4", "line 9: ends too early"),
            ("missing field `schema` at line 2 column 1", "line 2: missing field `schema`"),
            (
                "invalid type: integer `5`, expected struct Answer at line 7 column 3",
                "line 7: invalid type: `5`, expected an object",
            ),
            ("invalid type: null, expected f64", "invalid type: null, expected a number"),
            ("no such CPU", "no such CPU"),
        ] {
            assert_eq!(of_json(message), told);
        }
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!(at_line("a\nb\nc", Some(2), "no"), "line 2: no");
        assert_eq!(at_line("a\nb\nc", None, "no"), "line 1: no");
        // Within a letter of two bytes, and beyond the end.
        assert_eq!(at_line("\né\n\n", Some(2), "no"), "line 2: no");
        assert_eq!(at_line("a\n", Some(9), "no"), "line 2: no");
    }
}
