//! Ten thousand hostile names in result files, through everything that shows them. What each reader makes of it is asked of
//! another's parser: html5ever for pages, csv for tables, pulldown-cmark for Markdown.

#[path = "../../../figure/tests/support/hostile.rs"]
mod hostile;

use crate::show::answer::ShownParts;
use crate::show::result_file::ResultFile;
use crate::show::screen::TextStyle;
use crate::show::{csv, markdown};
use hostile::{acts_on_a_terminal, names};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, TagKind, TagToken, Token, TokenSink, TokenSinkResult, Tokenizer};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use wattwise_advice::result::Comparison;

const NAMES: usize = 10_000;

/// The texts of a result file that are no words of its format, so that any name may stand there.
fn free_texts(whole: &Value) -> Vec<String> {
    fn all(value: &Value, into: &mut BTreeSet<String>) {
        match value {
            Value::String(text) => _ = into.insert(text.clone()),
            Value::Array(items) => items.iter().for_each(|v| all(v, into)),
            Value::Object(fields) => fields.values().for_each(|v| all(v, into)),
            _ => {}
        }
    }
    let mut texts = BTreeSet::new();
    all(whole, &mut texts);
    let is_free = |text: &String| {
        let other = renamed(whole, &BTreeMap::from([(text.clone(), "any name".to_owned())]));
        ResultFile::parse(other.to_string().as_bytes()).is_ok()
    };
    texts.into_iter().filter(is_free).collect()
}

/// The same with other names.
fn renamed(value: &Value, to: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => Value::String(to.get(text).unwrap_or(text).clone()),
        Value::Array(items) => items.iter().map(|v| renamed(v, to)).collect(),
        Value::Object(fields) => fields.iter().map(|(k, v)| (k.clone(), renamed(v, to))).collect(),
        other => other.clone(),
    }
}

/// A kind of result file.
struct ResultKind {
    name: String,
    whole: Value,
    free: Vec<String>,
    /// It with names that act nowhere.
    benign: ResultFile,
}

fn kinds() -> &'static [ResultKind] {
    static KINDS: OnceLock<Vec<ResultKind>> = OnceLock::new();
    KINDS.get_or_init(|| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/results");
        let kind = |file: std::fs::DirEntry| {
            let name = file.file_name().to_string_lossy().into_owned();
            let whole: Value =
                serde_json::from_slice(&std::fs::read(file.path()).expect(&name)).expect(&name);
            let free = free_texts(&whole);
            assert!(!free.is_empty(), "{name}");
            let names =
                free.iter().enumerate().map(|(i, text)| (text.clone(), format!("name {i}"))).collect();
            let benign = ResultFile::parse(renamed(&whole, &names).to_string().as_bytes()).expect(&name);
            ResultKind { name, whole, free, benign }
        };
        std::fs::read_dir(folder).expect(folder).flatten().map(kind).collect()
    })
}

/// Result files of each kind with hostile names for all that is no word of their format; how many names.
fn each(mut visit: impl FnMut(&'static ResultKind, &ResultFile)) -> usize {
    let mut stock = names(9, 4 * NAMES).into_iter().filter(|n| !n.trim().is_empty());
    let mut used = 0;
    while used < NAMES {
        for kind in kinds() {
            // Within a file each is shown in its own way: two states that look alike would be one.
            let mut shown = BTreeSet::new();
            let apart = (&mut stock).filter(|name| shown.insert(wattwise_figure::one_line(name)));
            let names = kind.free.iter().cloned().zip(apart).collect();
            let text = renamed(&kind.whole, &names).to_string();
            let hostile = ResultFile::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{}: {e}", kind.name));
            visit(kind, &hostile);
            used += kind.free.len();
        }
    }
    used
}

fn comparisons(result: &ResultFile) -> Vec<&Comparison> {
    match result {
        ResultFile::Compare(c) => vec![c],
        ResultFile::CompareSet(set) => set.comparisons.iter().collect(),
        _ => Vec::new(),
    }
}

#[test]
fn no_name_acts_on_a_terminal() {
    let tried = each(|kind, hostile| {
        let file = &kind.name;
        let colour = TextStyle { colour: true, columns: 120, lines: None };
        let styles = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[22m", "\x1b[38;5;10m", "\x1b[39m"];
        let coloured = styles
            .iter()
            .fold(hostile.text(colour, ShownParts::WHOLE), |text, style| text.replace(style, ""));
        for shown in [hostile.text(TextStyle::PLAIN, ShownParts::WHOLE), coloured, hostile.verdict()] {
            assert_eq!(acts_on_a_terminal(&shown), None, "{file}: {shown:?}");
            // A command that could not be ours is none, and no name makes a line that looks like one.
            assert!(!shown.lines().any(|line| line.starts_with("To apply")), "{file}: {shown}");
        }
    });
    assert!(tried >= NAMES, "{tried}");
}

/// What a page is made of: how often each element stands there, and which attributes it has.
#[derive(Default)]
struct PageShape {
    elements: RefCell<BTreeMap<String, usize>>,
    attributes: RefCell<BTreeSet<(String, String)>>,
    others: RefCell<usize>,
}

impl TokenSink for PageShape {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        match token {
            TagToken(tag) => {
                let name = tag.name.to_string();
                let side = if tag.kind == TagKind::EndTag { "/" } else { "" };
                *self.elements.borrow_mut().entry(format!("{side}{name}")).or_default() += 1;
                let own = tag.attrs.iter().map(|a| (name.clone(), a.name.local.to_string()));
                // Whether a cell is set as a number goes by how it begins.
                self.attributes.borrow_mut().extend(own.filter(|(_, a)| a != "class"));
                match (tag.kind, name.as_str()) {
                    (TagKind::StartTag, "script") => return TokenSinkResult::RawData(RawKind::ScriptData),
                    (TagKind::StartTag, "style") => return TokenSinkResult::RawData(RawKind::Rawtext),
                    (TagKind::StartTag, "title") => return TokenSinkResult::RawData(RawKind::Rcdata),
                    _ => {}
                }
            }
            Token::CommentToken(_) | Token::ParseError(_) | Token::NullCharacterToken => {
                *self.others.borrow_mut() += 1
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// Our own script and style are the same in every page, and long; where a line may break hangs on the name's own characters.
pub(super) fn ours_left_out(html: &str) -> String {
    use wattwise_page::{REPORT_CSS, REPORT_JS, UPLOT_CSS, UPLOT_JS};
    let own = [REPORT_CSS, REPORT_JS, UPLOT_CSS, UPLOT_JS, "<wbr>"];
    own.iter().fold(html.to_owned(), |html, asset| html.replace(asset, ""))
}

fn shape(html: &str) -> PageShape {
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from(html));
    let tokenizer = Tokenizer::new(PageShape::default(), Default::default());
    while !queue.is_empty() {
        _ = tokenizer.feed(&queue);
    }
    tokenizer.end();
    tokenizer.sink
}

#[test]
fn no_name_acts_on_a_browser() {
    let pages = |result: &ResultFile, title: &str| {
        let mut all = vec![wattwise_page::page("report", title, &result.sections())];
        all.extend(comparisons(result).iter().map(|c| wattwise_report::compare_html(c, &[], title)));
        all
    };
    let titles = names(11, 1000);
    let (mut at, mut twins) = (0, BTreeMap::new());
    let tried = each(|kind, hostile| {
        let file = &kind.name;
        let twin: &Vec<PageShape> = twins.entry(file).or_insert_with(|| {
            pages(&kind.benign, "a title").iter().map(|page| shape(&ours_left_out(page))).collect()
        });
        at += 1;
        let pages = pages(hostile, &titles[at % titles.len()]);
        assert_eq!(twin.len(), pages.len());
        for (twin, page) in twin.iter().zip(pages) {
            let page = ours_left_out(&page);
            assert_eq!(acts_on_a_terminal(&page), None, "{file}");
            let found = shape(&page);
            assert_eq!(found.elements, twin.elements, "{file}: an element more, or one less");
            assert_eq!(found.attributes, twin.attributes, "{file}");
            assert_eq!(found.others, twin.others, "{file}: a comment or broken HTML");
        }
    });
    assert!(tried >= NAMES, "{tried}");
}

#[test]
fn no_name_acts_on_a_spreadsheet() {
    const TEXTS: [&str; 6] = ["workload", "machine", "policy", "reference", "judged_by", "approximation"];
    let mut tried = 0;
    for names in names(12, NAMES).chunks(5) {
        let bytes = include_bytes!("../../tests/results/compare.json");
        let Ok(ResultFile::Compare(mut c)) = ResultFile::parse(bytes) else { panic!("as compare wrote it") };
        let of = |i: usize| names[i % names.len()].clone();
        (c.workload.name, c.machine, c.reference) = (of(0), of(1), of(2));
        c.results.truncate(1);
        (c.results[0].policy, c.results[0].approximation) = (of(3), Some(of(4)));
        c.results[0].uncertain.energy_ratio.low = -0.5;
        let text = csv::comparisons(&[*c]).unwrap_or_else(|e| panic!("{}", e.message));
        assert_eq!(acts_on_a_terminal(&text.replace("\r\n", "\n")), None, "{text:?}");
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let head: Vec<String> = reader.headers().expect("a head").iter().map(str::to_owned).collect();
        let rows: Vec<_> = reader.records().map(|r| r.expect("a row")).collect();
        assert_eq!(rows.len(), 1, "{text}");
        for (column, cell) in head.iter().zip(&rows[0]) {
            if TEXTS.contains(&column.as_str()) {
                // OWASP, CSV Injection; spreadsheets of other locales part cells at semicolons.
                for piece in cell.split(';') {
                    let first =
                        piece.trim_start_matches(|c: char| c.is_whitespace() || c == '"').chars().next();
                    assert!(!first.is_some_and(|c| "=+-@＝＋－＠\t\r\n".contains(c)), "{column}: {cell:?}");
                }
            } else {
                assert!(
                    cell.is_empty() || cell.parse::<f64>().is_ok() || ["true", "false"].contains(&cell),
                    "{column}: {cell}"
                );
            }
        }
        let low = head.iter().position(|h| h == "energy_ratio_low").expect("the column");
        assert_eq!(&rows[0][low], "-0.5", "a number stays a number");
        tried += names.len();
    }
    assert!(tried >= NAMES, "{tried}");
}

/// The blocks and spans of a text, as GitHub reads it, as far as a library does. Of its words those of the columns that hold
/// figures: a name that ends its own cell would move them, and what is over at a row's end is dropped.
fn markup(text: &str) -> Vec<String> {
    const FIGURES: std::ops::RangeInclusive<usize> = 2..=5;
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_MATH;
    let mut column = 0;
    let mut all = Vec::new();
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Text(words) if FIGURES.contains(&column) => all.push(words.into_string()),
            Event::Text(_) | Event::SoftBreak => {}
            other => {
                match &other {
                    Event::Start(Tag::TableRow | Tag::TableHead) => column = 0,
                    Event::End(TagEnd::TableCell) => column += 1,
                    Event::End(TagEnd::Table) => column = 0,
                    _ => {}
                }
                all.push(format!("{other:?}"));
            }
        }
    }
    all
}

#[test]
fn no_name_acts_on_a_reader_of_markdown() {
    let text = |result: &ResultFile| match result {
        ResultFile::Compare(c) => markdown::comparison(c),
        ResultFile::CompareSet(set) => markdown::set(set),
        _ => String::new(),
    };
    let mut twins = BTreeMap::new();
    let tried = each(|kind, hostile| {
        let file = &kind.name;
        let twin = twins.entry(file).or_insert_with(|| markup(&text(&kind.benign)));
        let found = text(hostile);
        assert_eq!(acts_on_a_terminal(&found), None, "{file}: {found}");
        assert_eq!(markup(&found), *twin, "{file}:\n{found}");
        // What GitHub makes a link or a mention of by itself (GFM 6.9), which the library does not.
        assert!(!found.contains("https://") && !found.to_lowercase().contains("www.e"), "{file}: {found}");
        let mentions = found.match_indices('@').filter(|(at, _)| !found[at + 1..].starts_with("&#8203;"));
        assert_eq!(mentions.count(), 0, "{file}: {found}");
    });
    assert!(tried >= NAMES, "{tried}");
}

/// A result file's own command is shown as one only if wattwise could have written it.
#[test]
fn a_strangers_command_is_not_offered() {
    let whole: Value =
        serde_json::from_slice(include_bytes!("../../tests/results/compare.json")).expect("JSON");
    let ours = whole["answer"]["apply"].as_str().expect("a command").to_owned();
    let other_than_reference =
        whole["results"].as_array().expect("rows").iter().find(|r| r["policy"] != whole["reference"]);
    let shown = |apply: &str| {
        let mut other = whole.clone();
        other["answer"]["recommended"] = other_than_reference.expect("two policies")["policy"].clone();
        other["answer"]["apply"] = apply.into();
        let result = ResultFile::parse(other.to_string().as_bytes()).expect("a comparison");
        let html = comparisons(&result)
            .iter()
            .map(|c| wattwise_report::compare_html(c, &[], "x"))
            .collect::<String>();
        (result.text(TextStyle::PLAIN, ShownParts::WHOLE), html)
    };
    let (text, html) = shown(&ours);
    assert!(
        text.contains(&format!("To apply it on such a machine: sudo {ours}\n"))
            && html.contains("id=\"apply\"")
    );
    for name in names(13, 30) {
        for apply in
            [name.clone(), format!("{ours} {name}"), format!("{ours}; touch x"), format!("{ours} && touch x")]
        {
            if apply.trim_end() == ours {
                continue;
            }
            let (text, html) = shown(&apply);
            assert!(
                !text.contains("To apply it on such a machine:") && !html.contains("id=\"apply\""),
                "{apply:?}"
            );
            assert!(text.contains("none that wattwise writes"), "{text}");
        }
    }
}
