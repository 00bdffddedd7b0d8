//! Result files: told apart by their schema, and shown for people.

use crate::machine::{calibrate, record};
use crate::model::trace;
use crate::show::answer::{self, ShownParts};
use crate::show::believable::{believable, believable_lines};
use crate::show::benches::{throughput_verdict, transition_verdict, wake_verdict};
use crate::show::screen::TextStyle;
use crate::show::table::PolicyOrder;
use crate::show::{benches, mix, older, run, summary, table, tune};
use serde::de::DeserializeOwned;
use std::borrow::BorrowMut;
use std::path::Path;
use wattwise_advice::result::Comparison;
use wattwise_advice::summary::ComparisonSet;
use wattwise_figure::mistake::of_json;
use wattwise_figure::{fixed, one_line, shell};
use wattwise_live::ab::log as ab_file;
use wattwise_live::ab::log::AbRead;
use wattwise_live::ab::result;
use wattwise_live::bench::throughput;
use wattwise_live::bench::throughput::Throughput;
use wattwise_live::bench::transition;
use wattwise_live::bench::transition::Matrix;
use wattwise_live::bench::wake;
use wattwise_live::bench::wake::WakeUps;
use wattwise_live::prove::conclude;
use wattwise_live::prove::log as prove_log;
use wattwise_live::prove::result as prove;
use wattwise_live::prove::result::Proof;
use wattwise_live::prove::say as prove_say;
use wattwise_lockbench::Bench;
use wattwise_page::Section;
use wattwise_replay::apply::is_ours;
use wattwise_trace::record::RecordReport;
use wattwise_tune::result::TuneResult;

/// What a result file holds.
pub(crate) enum ResultFile {
    Compare(Box<Comparison>),
    CompareSet(Box<ComparisonSet>),
    Run(Box<run::RunResult>),
    Ab(Box<AbRead>),
    Judged(Box<result::Judgement>),
    Proof(Box<prove_log::ProofRead>),
    Proved(Box<Proof>),
    Tune(Box<TuneResult>),
    Trace(Box<trace::Shown>),
    Import(Box<trace::Imported>),
    Record(Box<RecordReport>),
    Calibration(Box<calibrate::Calibrated>),
    Locks(Box<Bench>),
    Transition(Box<Matrix>),
    Throughput(Box<Throughput>),
    Wake(Box<WakeUps>),
}

/// Why a file is no result, and what is one.
fn no_result(e: &serde_json::Error) -> String {
    let why = of_json(&e.to_string());
    format!(
        "{why}; expected a result file of wattwise (made with --json or --output; 'wattwise trace' shows a recording)"
    )
}

impl ResultFile {
    /// Reads one, whatever it is.
    pub(crate) fn read(path: &Path) -> Result<ResultFile, String> {
        let at = path.display();
        let bytes = wattwise_figure::budget::read_result(path)
            .map_err(|e| format!("{at}: {e}; expected a result file of wattwise"))?;
        ResultFile::parse(&bytes).map_err(|why| format!("{at}: {why}"))
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<ResultFile, String> {
        #[derive(serde::Deserialize)]
        struct Schema {
            schema: String,
        }
        fn whole<T: DeserializeOwned>(bytes: &[u8]) -> Result<Box<T>, String> {
            // Read as it is first, for errors that name the line.
            serde_json::from_slice::<T>(bytes).map_err(|e| no_result(&e))?;
            let mut value = serde_json::from_slice(bytes).map_err(|e| no_result(&e))?;
            believable(&mut value)?;
            serde_json::from_value(value).map(Box::new).map_err(|e| no_result(&e))
        }
        let first = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
        if first.starts_with(b"{\"header\"") {
            believable_lines(bytes)?;
            return ab_file::parse(bytes).map(|r| ResultFile::Ab(Box::new(in_lines(r))));
        }
        if first.starts_with(b"{\"proof\"") {
            believable_lines(bytes)?;
            return prove_log::parse(bytes).map(|r| ResultFile::Proof(Box::new(proof_in_lines(r))));
        }
        let Schema { schema } = serde_json::from_slice(bytes).map_err(|e| no_result(&e))?;
        match schema.as_str() {
            wattwise_advice::result::SCHEMA => {
                whole::<Comparison>(bytes).map(checked).map(ResultFile::Compare)
            }
            wattwise_advice::summary::SCHEMA => whole::<ComparisonSet>(bytes).map(|mut set| {
                set.comparisons = set.comparisons.into_iter().map(checked).collect();
                for answer in &mut set.summary.answers {
                    only_ours(&mut answer.best_apply, &mut answer.best_why_not);
                }
                if let Some(answer) = set.mix.as_mut().map(|mix| &mut mix.answer) {
                    only_ours(&mut answer.apply, &mut answer.why_not);
                }
                ResultFile::CompareSet(set)
            }),
            run::SCHEMA => whole(bytes).map(ResultFile::Run),
            result::SCHEMA => whole(bytes).and_then(judged).map(ResultFile::Judged),
            prove::SCHEMA => whole(bytes).map(ResultFile::Proved),
            wattwise_tune::result::SCHEMA => whole(bytes).map(tuned).map(ResultFile::Tune),
            trace::SCHEMA => whole(bytes).map(ResultFile::Trace),
            trace::IMPORT_SCHEMA => whole(bytes).map(ResultFile::Import),
            record::SCHEMA => whole(bytes).map(ResultFile::Record),
            calibrate::SCHEMA => whole(bytes).map(ResultFile::Calibration),
            wattwise_lockbench::SCHEMA => whole(bytes).map(ResultFile::Locks),
            transition::SCHEMA => whole(bytes).map(ResultFile::Transition),
            throughput::SCHEMA => whole(bytes).map(ResultFile::Throughput),
            wake::SCHEMA => whole(bytes).map(ResultFile::Wake),
            other => Err(older::refused(other, bytes)),
        }
    }

    /// For the terminal.
    pub(crate) fn text(&self, look: TextStyle, shown: ShownParts) -> String {
        match self {
            ResultFile::Compare(c) => answer::comparison(c, look, PolicyOrder::Best, shown),
            ResultFile::CompareSet(set) => {
                let each = || {
                    let one = |c| answer::comparison(c, look, PolicyOrder::Best, shown) + "\n";
                    set.comparisons.iter().map(one).collect::<String>()
                };
                match &set.mix {
                    Some(mix) if shown.all => each() + &mix::text(mix, &set.comparisons, look, true),
                    Some(mix) => mix::text(mix, &set.comparisons, look, false),
                    None => each() + &summary::text(set, look),
                }
            }
            ResultFile::Run(r) => run::text(r),
            ResultFile::Ab(read) => result::text(&result::of(read)),
            ResultFile::Judged(judged) => result::text(judged),
            ResultFile::Proof(read) => prove_say::text(&conclude::of(read)),
            ResultFile::Proved(proof) => prove_say::text(proof),
            ResultFile::Tune(t) => tune::text(t, look.colour),
            ResultFile::Trace(t) => t.text(false),
            ResultFile::Import(i) => i.text(),
            ResultFile::Record(r) => record::text(r),
            ResultFile::Calibration(c) => calibrate::text(c),
            ResultFile::Locks(b) => crate::bench::locks::text(b, look),
            ResultFile::Transition(m) => benches::transition(m),
            ResultFile::Throughput(t) => benches::throughput(t),
            ResultFile::Wake(w) => benches::wake(w),
        }
    }

    /// What follows, in a sentence or two.
    pub(crate) fn verdict(&self) -> String {
        match self {
            ResultFile::Compare(c) => c.answer.text.clone(),
            ResultFile::CompareSet(set) => match &set.mix {
                Some(mix) => mix.answer.text.clone(),
                None => summary::answer(set),
            },
            ResultFile::Run(r) => run_verdict(r),
            ResultFile::Ab(read) => judged_verdict(&result::of(read)),
            ResultFile::Judged(judged) => judged_verdict(judged),
            ResultFile::Proof(read) => conclude::of(read).words,
            ResultFile::Proved(proof) => proof.words.clone(),
            ResultFile::Tune(t) => t.verdict.text.clone(),
            ResultFile::Trace(t) => first_line(&t.text(false)),
            ResultFile::Import(i) => first_line(&i.text()),
            ResultFile::Record(r) => first_line(&record::text(r)),
            ResultFile::Calibration(c) => first_line(&calibrate::text(c)),
            ResultFile::Locks(b) => b
                .verdict
                .as_ref()
                .map_or_else(|| format!("{} measurements", b.records.len()), |v| v.lock.clone()),
            ResultFile::Transition(m) => transition_verdict(m),
            ResultFile::Throughput(t) => throughput_verdict(t),
            ResultFile::Wake(w) => wake_verdict(w),
        }
    }

    /// For a page with others. Runs are set side by side by the caller.
    pub(crate) fn sections(&self) -> Vec<Section> {
        match self {
            ResultFile::Compare(c) => wattwise_report::compare_sections(c),
            ResultFile::CompareSet(set) => {
                set.comparisons.iter().flat_map(wattwise_report::compare_sections).collect()
            }
            ResultFile::Run(r) => wattwise_report::run_sections(&[(run_name(r), &r.measured)]),
            ResultFile::Ab(read) => wattwise_report::ab_sections(read, &result::of(read)),
            ResultFile::Proof(read) => wattwise_report::prove_sections(Some(read), &conclude::of(read)),
            ResultFile::Proved(proof) => wattwise_report::prove_sections(None, proof),
            ResultFile::Judged(_)
            | ResultFile::Tune(_)
            | ResultFile::Trace(_)
            | ResultFile::Import(_)
            | ResultFile::Record(_)
            | ResultFile::Calibration(_)
            | ResultFile::Locks(_) => {
                vec![Section::Text {
                    title: "Result".to_owned(),
                    body: self.text(TextStyle::PAGE, ShownParts { all: true, notes: true }),
                }]
            }
            ResultFile::Transition(m) => wattwise_report::transition_sections(m),
            ResultFile::Throughput(t) => wattwise_report::throughput_sections(t),
            ResultFile::Wake(w) => wattwise_report::wake_sections(w),
        }
    }
}

/// Texts in lines also for what of an experiment is used as well as shown; all else is in lines as it is read.
fn in_lines(mut read: AbRead) -> AbRead {
    let header = &mut read.header;
    for arm in &mut header.arms {
        arm.policy = arm.policy.as_deref().map(one_line);
    }
    header.watts_of = one_line(&header.watts_of);
    read
}

/// The same for a proof's log.
fn proof_in_lines(mut read: prove_log::ProofRead) -> prove_log::ProofRead {
    for side in &mut read.header.sides {
        side.policy = one_line(&side.policy);
    }
    read
}

/// A comparison whose command is shown only if it could be ours: whoever pastes it would run it.
fn checked<C: BorrowMut<Comparison>>(mut of: C) -> C {
    let answer = &mut of.borrow_mut().answer;
    only_ours(&mut answer.apply, &mut answer.why_not);
    of
}

/// Takes away a command that could not be ours.
fn only_ours(apply: &mut Option<String>, why_not: &mut Option<String>) {
    if apply.take_if(|line| !is_ours(line)).is_some() {
        *why_not = Some("the file's command is none that wattwise writes".into());
    }
}

/// How a run is named beside others.
pub(crate) fn run_name(r: &run::RunResult) -> String {
    match &r.policy {
        Some(policy) => format!("{} under {policy}", shell::line(&r.command)),
        None => shell::line(&r.command),
    }
}

/// An experiment whose comparisons are of arms that it has.
fn judged(of: Box<result::Judgement>) -> Result<Box<result::Judgement>, String> {
    let missing = of.comparisons.iter().find(|c| c.arm == 0 || c.arm >= of.arms.len());
    match missing {
        Some(c) => {
            Err(format!("compares arm {} of {}; expected the whole result of an ab", c.arm, of.arms.len()))
        }
        None => Ok(of),
    }
}

fn judged_verdict(judged: &result::Judgement) -> String {
    let words = judged.comparisons.iter().filter_map(|c| c.verdicts.first()).map(|v| v.words.as_str());
    words.collect::<Vec<_>>().join("; ")
}

fn first_line(text: &str) -> String {
    text.lines().find(|l| !l.is_empty()).unwrap_or_default().to_owned()
}

/// A search whose command is shown only if it could be ours, as that of a comparison.
fn tuned(mut of: Box<TuneResult>) -> Box<TuneResult> {
    if of.winner.apply.take_if(|line| !is_ours(line)).is_some() {
        of.winner.why_not = Some("the file's command is none that wattwise writes".into());
    }
    of
}

fn run_verdict(r: &run::RunResult) -> String {
    let m = &r.measured;
    let energy = match (m.machine.joules, m.mean_w()) {
        (Some(j), Some(w)) => format!("{} J, {} W", fixed(j, 2), fixed(w, 2)),
        (Some(j), None) => format!("{} J", fixed(j, 2)),
        (None, _) => "energy not known".to_owned(),
    };
    format!("{} and {energy}: one run supports no verdict", table::seconds(m.wall_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::strangers::ours_left_out;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;
    use wattwise_figure::Random;

    /// How often each file is damaged.
    const ROUNDS: usize = 150;

    /// One place of a result becomes something else: what no program wrote, but is JSON.
    fn damage(value: &mut Value, random: &mut Random) {
        let inner = match value {
            Value::Array(items) if !items.is_empty() && random.below(8) != 0 => {
                let at = random.below(items.len());
                Some(&mut items[at])
            }
            Value::Object(fields) if !fields.is_empty() && random.below(12) != 0 => {
                let at = random.below(fields.len());
                fields.values_mut().nth(at)
            }
            _ => None,
        };
        if let Some(inner) = inner {
            return damage(inner, random);
        }
        match value {
            Value::Array(items) => match random.below(3) {
                0 => items.clear(),
                1 => items.truncate(1),
                _ => items.extend(items.clone()),
            },
            Value::Object(fields) => fields.clear(),
            Value::String(text) => {
                *text = ["", "\u{1b}[2J\n", "x"][random.below(3)].repeat(1 + random.below(300))
            }
            Value::Number(_) => {
                let odd = [0.0, -1.0, -0.0, 1e-320, 1e300, -1e300, 0.5, 18_446_744_073_709_551_615.0, 1e9];
                let whole = [0_i64, -1, 1, i64::MAX, i64::MIN];
                *value = match random.below(2) {
                    0 => json!(odd[random.below(odd.len())]),
                    _ => json!(whole[random.below(whole.len())]),
                };
            }
            Value::Bool(on) => *on = !*on,
            Value::Null => *value = json!(1),
        }
    }

    fn show(result: &ResultFile) -> [String; 4] {
        let page = match result {
            ResultFile::Compare(c) => wattwise_report::compare_html(c, &[], "test"),
            _ => String::new(),
        };
        [
            result.text(TextStyle::PLAIN, ShownParts::WHOLE),
            result.verdict(),
            wattwise_page::page("test", "test", &result.sections()),
            page,
        ]
    }

    /// What does not fit into 80 columns is shown where there is room, and nothing is cut.
    #[test]
    fn a_wide_terminal_shows_more() {
        let bytes = include_bytes!("../../tests/results/compare.json");
        let result = ResultFile::parse(bytes).expect("as compare wrote it");
        let rows = |columns| {
            let text = result.text(TextStyle { columns, ..TextStyle::PLAIN }, ShownParts::WHOLE);
            let head = text.lines().position(|l| l.trim_start().starts_with("policy ")).expect("a table");
            let rows: Vec<String> =
                text.lines().skip(head).map_while(|l| (!l.starts_with("* rec")).then(|| l.into())).collect();
            rows
        };
        let (narrow, wide) = (rows(80), rows(110));
        assert!(narrow.iter().all(|l| l.chars().count() <= 80) && !narrow[0].contains("above idle"));
        assert!(wide.iter().all(|l| l.chars().count() <= 110) && wide[0].contains("above idle  p99 "));
        // The last column of a row says how it stands, on a wide terminal after the figures more.
        let figures = |row: &str| row.split("  ").take(4).map(str::to_owned).collect::<Vec<_>>();
        assert!(
            narrow.iter().zip(&wide).all(|(n, w)| w.len() > n.len() && figures(n)[..2] == figures(w)[..2])
        );
    }

    /// All but the command that applies the answer, which is copied as it is.
    #[test]
    fn a_small_terminal_holds_every_line() {
        for bytes in [
            include_bytes!("../../tests/results/compare.json").as_slice(),
            include_bytes!("../../tests/results/compare-set.json").as_slice(),
        ] {
            let text = ResultFile::parse(bytes)
                .expect("as compare wrote it")
                .text(TextStyle::PLAIN, ShownParts::WHOLE);
            let long: Vec<&str> = text.lines().filter(|l| l.chars().count() > 80).collect();
            assert!(long.iter().all(|l| l.contains(": sudo wattwise set ")), "{long:?}");
        }
    }

    /// What is no figure to a reader: a number that overflowed, or a nothing with a sign.
    fn no_figure(text: &str) -> Option<&str> {
        let words = text.split(|c: char| c.is_whitespace() || "<>(),;\"=".contains(c));
        let is_nothing = |word: &str| {
            let digits = word.strip_prefix('-').map(|digits| digits.trim_end_matches('%'));
            digits.is_some_and(|d| d.starts_with('0') && d.chars().all(|c| matches!(c, '0' | '.')))
        };
        words.into_iter().find(|word| is_nothing(word) || ["inf", "-inf", "+inf", "NaN"].contains(word))
    }

    /// Where a value's numbers are, as JSON pointers, one of each name.
    fn figures(value: &Value, at: &str, name: &str, into: &mut BTreeMap<String, String>) {
        match value {
            Value::Number(_) => _ = into.insert(name.to_owned(), at.to_owned()),
            Value::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    figures(item, &format!("{at}/{i}"), name, into);
                }
            }
            Value::Object(fields) => {
                for (field, value) in fields {
                    figures(value, &format!("{at}/{field}"), &format!("{name}.{field}"), into);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn every_figure_is_shown_as_one_or_refused_by_its_name() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/results");
        for file in std::fs::read_dir(folder).expect(folder).flatten() {
            let file_name = file.file_name().to_string_lossy().into_owned();
            let whole: Value =
                serde_json::from_slice(&std::fs::read(file.path()).expect(&file_name)).expect(&file_name);
            let mut places = BTreeMap::new();
            figures(&whole, "", "", &mut places);
            for (name, place) in places {
                let parsed = |figure: f64| {
                    let mut value = whole.clone();
                    *value.pointer_mut(&place).expect("a place") = json!(figure);
                    ResultFile::parse(value.to_string().as_bytes())
                };
                for large in [1e308, -1e308] {
                    let why = parsed(large).err().unwrap_or_default();
                    // Where it has to be a whole number the reader of the format says so.
                    let field = name.rsplit('.').next().unwrap_or_default();
                    let is_named = why.contains(field) && why.contains("expected a figure below 1e20");
                    assert!(is_named || why.contains("invalid type"), "{file_name}: {name}: {why:?}");
                }
                for odd in [-0.0, -1e-9, -4e-4, -4e-3, -0.04, 0.0, 1e-320, 1e19, -1e19] {
                    for text in parsed(odd).iter().flat_map(show) {
                        let text = ours_left_out(&text);
                        assert_eq!(no_figure(&text), None, "{file_name}: {name} is {odd:e}");
                    }
                }
            }
        }
    }

    /// What is no result is told what a result is, not what a parser stumbled over.
    #[test]
    fn what_is_no_result_is_refused_in_words_for_people() {
        let whole = include_str!("../../tests/results/compare.json");
        let cut = &whole[..whole.len() / 2];
        let number = whole.replacen("\"replicas\": ", "\"replicas\": \"many\", \"was\": ", 1);
        for (bytes, words) in [
            (&b"PERFILE2\0\x01"[..], "line 1: is no JSON; expected a result file of wattwise"),
            (b"{\"a\": 1}", "line 1: missing field `schema`; expected a result file of wattwise"),
            (cut.as_bytes(), ": ends too early; expected a result file of wattwise"),
            (number.as_bytes(), ": invalid type: \"many\", expected a whole number, 0 or more"),
        ] {
            let why = ResultFile::parse(bytes).err().unwrap_or_default();
            assert!(why.contains(words) && !why.contains("column"), "{why}");
        }
    }

    #[test]
    fn damaged_results_are_shown_or_refused() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/results");
        let mut kinds = std::collections::BTreeSet::new();
        for file in std::fs::read_dir(folder).expect(folder).flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            let bytes = std::fs::read(file.path()).expect(&name);
            show(&ResultFile::parse(&bytes).unwrap_or_else(|e| panic!("{name}: {e}")));
            let whole: Value = serde_json::from_slice(&bytes).expect(&name);
            kinds.insert(whole["schema"].as_str().expect("a schema").to_owned());
            let mut random = Random::new(21);
            let mut shown = 0;
            for _ in 0..ROUNDS {
                let mut value = whole.clone();
                for _ in 0..1 + random.below(3) {
                    damage(&mut value, &mut random);
                }
                match ResultFile::parse(value.to_string().as_bytes()) {
                    Ok(result) => {
                        shown += 1;
                        show(&result);
                    }
                    // What it quotes of the file is made harmless where it is printed.
                    Err(why) => assert!(!why.is_empty(), "{name}"),
                }
            }
            assert!(shown > ROUNDS / 20, "{name}: damage that leaves nothing to show finds nothing: {shown}");
        }
        assert_eq!(kinds.len(), 13, "{kinds:?}");
    }
}
