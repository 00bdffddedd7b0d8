//! Names in tables: a policy's name takes more lines where a row has no room for it.

use comfy_table::Cell;
use wattwise_advice::words::parts;
use wattwise_figure::one_line;

/// Width of a policy's name that is left to it however wide the rest of a row is.
const LEAST_NAME: usize = 20;
/// Lines that a name may take.
const NAME_LINES: usize = 4;

/// A policy's name in lines of at most so many characters, all but the first set in.
pub(crate) fn name_cell(name: &str, most: usize) -> Cell {
    let lines = name_lines(&one_line(name), most);
    Cell::new(lines.join("\n  "))
}

/// A policy's name in lines: each begins with one of its parts (`+max=90%`). Only a part that is longer than a line is cut.
fn name_lines(name: &str, most: usize) -> Vec<String> {
    let width = |text: &str| text.chars().count();
    let mut lines: Vec<String> = Vec::new();
    for part in parts(name) {
        let room = if lines.len() < 2 { most } else { most.saturating_sub(2) };
        match lines.last_mut() {
            Some(line) if width(line) + width(part) <= room => line.push_str(part),
            _ => lines.push(part.to_owned()),
        }
    }
    if lines.len() > NAME_LINES {
        let rest = lines.split_off(NAME_LINES - 1).concat();
        lines.push(rest);
    }
    for (at, line) in lines.iter_mut().enumerate() {
        *line = shortened_policy(line, if at == 0 { most } else { most.saturating_sub(2) });
    }
    lines
}

/// A table that keeps within a width, drawn with names of at most so many characters a line.
pub(crate) fn fitted<'n>(
    columns: usize,
    names: impl Iterator<Item = &'n str>,
    draw: &dyn Fn(usize) -> String,
) -> String {
    let longest = names.map(|name| one_line(name).chars().count()).max().unwrap_or(0).max(LEAST_NAME);
    let whole = draw(longest);
    let over = whole.lines().map(shown_width).max().unwrap_or(0).saturating_sub(columns);
    if over == 0 { whole } else { draw(longest.saturating_sub(over).max(LEAST_NAME)) }
}

/// Characters of a line that take a column: no styles.
fn shown_width(line: &str) -> usize {
    let mut pieces = line.split('\x1b');
    let first = pieces.next().map_or(0, |piece| piece.chars().count());
    let after_style = |piece: &str| piece.split_once('m').map_or(0, |(_, rest)| rest.chars().count());
    first + pieces.map(after_style).sum::<usize>()
}

/// A name of at most so many characters.
pub(crate) fn shortened(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    let head: String = name.chars().take(most - 1).collect();
    head + "…"
}

/// The clauses of a heading that fit into a line: it ends where one does, or after a word where the first is longer than half a line.
pub(crate) fn clauses(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    // Room for the mark of what is left out.
    let end = text.char_indices().nth(most.saturating_sub(2)).map_or(text.len(), |(end, _)| end);
    let ends = [", ", ": ", "; ", " ("].into_iter().flat_map(|mark| text.match_indices(mark));
    let whole = |at: &usize| text[..*at].matches('(').count() == text[..*at].matches(')').count();
    let clause = ends.map(|(at, _)| at).filter(|&at| at <= end).filter(whole).max();
    match clause.filter(|&at| text[..at].chars().count() > most / 2) {
        Some(at) => format!("{} …", &text[..at]),
        None => {
            let line = shortened(text, most);
            line.rsplit_once(' ').map_or(line.clone(), |(words, _)| format!("{words}…"))
        }
    }
}

/// A policy's name of at most so many characters, with both of its ends: policies of one table often begin alike.
pub(crate) fn shortened_policy(name: &str, most: usize) -> String {
    let count = name.chars().count();
    if count <= most {
        return name.to_owned();
    }
    let head = (most - 1) / 2;
    let tail = name.chars().skip(count - (most - 1 - head));
    name.chars().take(head).chain(['…']).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::table::{cell, drawn};
    use comfy_table::{ContentArrangement, Table, presets};

    #[test]
    fn long_names_are_cut() {
        assert_eq!(shortened("schedutil", 28), "schedutil");
        assert_eq!(shortened(&"x".repeat(40), 28).chars().count(), 28);
        let longer = "hwp:epp=performance+max=90%+power=22W";
        assert_eq!(shortened_policy(longer, 22), "hwp:epp=pe…%+power=22W");
    }

    #[test]
    fn a_heading_ends_with_a_clause() {
        let text = "build: recorded: a C library (zstd), compiled by make -j2";
        assert_eq!(clauses(text, 80), text);
        assert_eq!(clauses(text, 40), "build: recorded: a C library (zstd) …");
        assert_eq!(clauses(text, 37), "build: recorded: a C library (zstd) …");
        assert_eq!(clauses(text, 36), "build: recorded: a C library …");
        assert_eq!(
            clauses("nginx: two workers that pack what is asked for", 30),
            "nginx: two workers that pack…"
        );
        assert_eq!(clauses(&"ä".repeat(9), 5), "ääää…");
    }

    /// Names of policies that begin and end alike are told apart, whatever the width.
    #[test]
    fn long_names_take_more_lines_and_lose_nothing() {
        let name = "hwp:epp=performance+max=90%+power=22W";
        assert_eq!(name_lines(name, 40), [name]);
        assert_eq!(name_lines(name, 28), ["hwp:epp=performance+max=90%", "+power=22W"]);
        assert_eq!(name_lines(name, 22), ["hwp:epp=performance", "+max=90%+power=22W"]);
        assert_eq!(name_lines("schedutil", 20), ["schedutil"]);
        assert_eq!(name_lines("burst:busy=2,idle=5", 14), ["burst:busy=2", ",idle=5"]);
        // Only what has no parts is cut, and what has very many.
        assert_eq!(name_lines(&("a".repeat(30) + &"b".repeat(30)), 21), ["aaaaaaaaaa…bbbbbbbbbb"]);
        let many = name_lines(&"+cmax=C1E".repeat(40), 20);
        assert!(many.len() == NAME_LINES && many.iter().all(|l| l.chars().count() <= 20), "{many:?}");
    }

    #[test]
    fn a_table_is_as_wide_as_asked() {
        let name = "hwp:epp=performance+max=90%+power=22W";
        let draw = |most: usize| {
            let mut table = Table::new();
            table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
            table.add_row(vec![cell("*"), name_cell(name, most), cell("x".repeat(30))]);
            drawn(table, true)
        };
        let widest = |columns| fitted(columns, [name].into_iter(), &draw).lines().map(shown_width).max();
        assert_eq!((widest(90), widest(60)), (Some(71), Some(54)));
        assert!(fitted(60, [name].into_iter(), &draw).contains("\n    +max=90%+power=22W"));
    }
}
