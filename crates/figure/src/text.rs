//! Words for people: one line whatever it quotes, and what may have been meant.

/// An error as one line: what it quotes may come from a file, and nothing there may break the line.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
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
