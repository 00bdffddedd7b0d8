//! Comparisons as Markdown, for issues and wikis: tables as GitHub shows them.

use crate::show::table::{self, PolicyOrder};
use crate::show::{notes, summary};
use std::fmt::Write;
use wattwise_advice::mix::MixPolicy;
use wattwise_advice::result::Comparison;
use wattwise_advice::summary::ComparisonSet;
use wattwise_figure::one_line;

/// Text that Markdown shows as it is, in a table's cell too: no markup, HTML, link or mention comes of it.
///
/// GitHub makes links of `https://...`, `www....` and addresses by themselves (GFM 6.9), the last even where `@` is escaped,
/// and tells people whom `@name` mentions: a character of no width after the `@` prevents both.
fn escaped(text: &str) -> String {
    let text = one_line(text);
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let links = match c {
            ':' => text[at..].starts_with("://"),
            '.' => text[..at].len() >= 3 && text.as_bytes()[at - 3..at].eq_ignore_ascii_case(b"www"),
            _ => false,
        };
        let acts = matches!(
            c,
            '\\' | '`'
                | '*'
                | '_'
                | '{'
                | '}'
                | '['
                | ']'
                | '<'
                | '>'
                | '('
                | ')'
                | '#'
                | '|'
                | '~'
                | '&'
                | '!'
                | '$'
                | '@'
        );
        if acts || links {
            out.push('\\');
        }
        out.push(c);
        if c == '@' {
            out.push_str("&#8203;");
        }
    }
    out
}

/// The same as a paragraph or an item of its own: at its beginning `-`, `+`, `=` and `1.` begin lists and headings too.
fn paragraph(text: &str) -> String {
    let text = escaped(text.trim());
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match text.as_bytes().get(digits) {
        Some(b'.') if digits > 0 => format!("{}\\{}", &text[..digits], &text[digits..]),
        Some(b'-' | b'+' | b'=') if digits == 0 => format!("\\{text}"),
        _ => text,
    }
}

/// A table; the first columns are text, the others numbers.
fn table(head: &[&str], text_columns: usize, rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &mut dyn Iterator<Item = String>| {
        cells.fold("|".to_owned(), |line, cell| line + " " + &cell + " |") + "\n"
    };
    let mut out = line(&mut head.iter().map(|h| escaped(h)));
    let rule = |column: usize| if column < text_columns { "---" } else { "--:" };
    out += &line(&mut (0..head.len()).map(|c| rule(c).to_owned()));
    for row in rows {
        out += &line(&mut row.iter().map(|cell| escaped(cell)));
    }
    out
}

/// One comparison: a heading, the answer, the table.
pub(crate) fn comparison(c: &Comparison) -> String {
    let mut out = String::new();
    _ = writeln!(out, "### {} on {}\n", escaped(&c.workload.name), escaped(&c.machine));
    _ = writeln!(out, "{}\n", paragraph(&c.answer.text));
    let more = table::in_markdown();
    let head =
        ["", "policy", "energy", "against ref.", table::time_word(c), table::beside_time(c), "best in"];
    let head: Vec<&str> = head.into_iter().chain(more.iter().map(|(head, _)| head.name)).collect();
    let rows = table::order(c, PolicyOrder::Best).into_iter().map(|r| {
        let mut row = vec![table::mark(c, r).to_owned(), r.policy.clone()];
        row.extend(table::figures(c, r));
        row.extend(more.iter().map(|column| table::screen_cell(column, c, r)));
        row
    });
    out += &table(&head, 2, rows);
    out.push('\n');
    for note in notes::notes(c) {
        _ = writeln!(out, "- {}", paragraph(&note));
    }
    out
}

/// Several comparisons, and their summary.
pub(crate) fn set(set: &ComparisonSet) -> String {
    let mut out = String::new();
    for c in &set.comparisons {
        out += &comparison(c);
        out.push('\n');
    }
    if let Some(mix) = &set.mix {
        _ = writeln!(out, "### The mix\n\n{}\n", paragraph(&mix.answer.text));
        let works = mix.weights.len();
        let row = |p: &MixPolicy| {
            let kept = works.saturating_sub(p.over_limit_in.len());
            vec![
                if p.policy == mix.answer.recommended { "*" } else { "" }.to_owned(),
                p.policy.clone(),
                table::ratio_text(p.power_ratio),
                format!("{:.2} W", p.mean_w.median),
                format!("{:.0} %", p.best_share * 100.0),
                format!("{kept} of {works}"),
                p.worst.workload.clone(),
            ]
        };
        let head = ["", "policy", "energy", "mean power", "best in", "within limit", "saves least in"];
        out += &table(&head, 2, mix.policies.iter().map(row));
        out.push('\n');
    }
    _ = writeln!(out, "### {}\n", summary::title(set));
    _ = writeln!(out, "{}\n", paragraph(&summary::answer(set)));
    out += &table(&summary::HEAD, 2, summary::rows(set, usize::MAX).into_iter());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_markdown_would_take_is_escaped() {
        assert_eq!(escaped("a|b"), "a\\|b");
        assert_eq!(escaped("up_threshold=95"), "up\\_threshold=95");
        assert_eq!(escaped("<b>\nx"), "\\<b\\> x");
        assert_eq!(escaped("[x](y) \\"), "\\[x\\]\\(y\\) \\\\");
    }

    #[test]
    fn a_table_has_a_rule_and_as_many_cells_in_each_row() {
        let rows = [vec!["a|".to_owned(), "1".to_owned()], vec!["b".to_owned(), "2".to_owned()]];
        let text = table(&["name", "J"], 1, rows.into_iter());
        assert_eq!(text, "| name | J |\n| --- | --: |\n| a\\| | 1 |\n| b | 2 |\n");
    }
}
