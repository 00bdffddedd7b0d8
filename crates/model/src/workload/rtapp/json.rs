//! JSON as json-c and workgen take it, with the order of its members, and each of them where one key is there several times.

use serde::Deserialize;
use serde::de::{MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::ops::RangeInclusive;

/// A value, as far as rt-app tells them apart.
pub(super) enum Json {
    Whole(i64),
    Text(String),
    List(Vec<Json>),
    Object(Members),
    /// What no key takes: a fraction, `true`, `null`.
    Other,
}

/// An object's members in order.
pub(super) type Members = Vec<(String, Json)>;

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Json, D::Error> {
        from.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_i64<E>(self, n: i64) -> Result<Json, E> {
        Ok(Json::Whole(n))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Json, E> {
        Ok(i64::try_from(n).map_or(Json::Other, Json::Whole))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = from.next_element()? {
            list.push(value);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Json, A::Error> {
        let mut members = Members::new();
        while let Some(member) = from.next_entry()? {
            members.push(member);
        }
        Ok(Json::Object(members))
    }
}

/// A member by its key; of several the last, as json-c has it.
pub(super) fn get<'a>(members: &'a Members, key: &str) -> Option<&'a Json> {
    members.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
}

/// A member that is a whole number.
pub(super) fn whole(members: &Members, key: &str, range: RangeInclusive<i64>) -> Result<Option<i64>, String> {
    match get(members, key) {
        None => Ok(None),
        Some(Json::Whole(n)) if range.contains(n) => Ok(Some(*n)),
        Some(_) => Err(format!("'{key}': expected a whole number from {} to {}", range.start(), range.end())),
    }
}

/// The text as JSON alone, if it has an object `tasks` at its top: without comments and commas behind the last member, and with
/// a value for each key. Its lines stay.
pub(super) fn strict(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut open = Vec::new();
    // The last two letters that mean something; of a string the first quote.
    let (mut before, mut last) = (' ', ' ');
    let (mut comma, mut string, mut has_tasks) = (0, "", false);
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let (piece, after) = rest.split_at(piece(rest, letter));
        rest = after;
        if letter == '/' && piece.len() > 1 {
            out.extend(std::iter::once(' ').chain(piece.chars().filter(|&c| c == '\n')));
            continue;
        }
        if letter.is_whitespace() {
            out.push(letter);
            continue;
        }
        let is_member = last == '"' && matches!(before, '{' | ',') && open.last() == Some(&'{');
        if is_member && matches!(letter, ',' | '}') {
            out.push_str(": \"\"");
        }
        match letter {
            ',' => comma = out.len(),
            '"' => string = piece,
            '{' | '[' => {
                has_tasks |= letter == '{' && last == ':' && open.len() == 1 && string == "\"tasks\"";
                open.push(letter);
            }
            '}' | ']' => {
                if last == ',' {
                    out.replace_range(comma..=comma, " ");
                }
                open.pop();
            }
            _ => {}
        }
        (before, last) = (last, letter);
        out.push_str(piece);
    }
    has_tasks.then_some(out)
}

/// How long the string, the comment or the one letter is that a text begins with.
fn piece(text: &str, letter: char) -> usize {
    let until = |end: &str| text.get(2..).and_then(|t| t.find(end)).map(|at| at + 2);
    match letter {
        '"' => {
            let mut escaped = false;
            let end = text.bytes().skip(1).position(|b| {
                let ends = b == b'"' && !escaped;
                escaped = b == b'\\' && !escaped;
                ends
            });
            end.map_or(text.len(), |at| at + 2)
        }
        '/' if text.starts_with("/*") => until("*/").map_or(text.len(), |at| at + 2),
        '/' if text.starts_with("//") => until("\n").unwrap_or(text.len()),
        _ => letter.len_utf8(),
    }
}
