//! Result files that are not read: of an older shape, or shown in another way.

use serde_json::Value;
use wattwise_figure::{one_line, shell};

/// Shapes that earlier versions wrote, and which the command writes now.
const OLDER: [&str; 2] = ["wattwise-compare-1", "wattwise-compare-2"];
/// Results that hold no judgement: what prints them.
const PRINTED: [(&str, &str); 12] = [
    ("wattwise.info/", "wattwise info"),
    ("wattwise.set/", "wattwise info"),
    ("wattwise.restore/", "wattwise restore --dry-run"),
    ("wattwise.list/", "wattwise policies"),
    ("wattwise.show/", "wattwise policies show NAME"),
    ("wattwise.machine/", "wattwise machines show NAME"),
    ("wattwise.machine-check/", "wattwise machines check NAME"),
    ("wattwise.machine-compare/", "wattwise machines compare A B"),
    ("wattwise.score/", "wattwise machines score DATA-SET FILE"),
    ("wattwise.reproduce/", "wattwise reproduce"),
    ("wattwise.bench-sim/", "wattwise bench sim"),
    ("wattwise.locks-advice/", "wattwise locks advise -- COMMAND"),
];

/// Why a file of this schema is not shown, and what to do: one line.
pub(crate) fn refused(schema: &str, bytes: &[u8]) -> String {
    let shown = one_line(schema);
    if OLDER.contains(&schema) {
        return format!("has schema '{shown}', of an older wattwise; make it again: {}", again(bytes));
    }
    if let Some((_, command)) = PRINTED.iter().find(|(known, _)| schema.starts_with(known)) {
        return format!("has schema '{shown}', which is not shown again; for the same anew: {command}");
    }
    format!(
        "has schema '{shown}'; expected one of compare, tune, run, ab, record, trace, import, calibrate, bench locks, transition, \
         throughput or wake"
    )
}

/// The command of an older comparison, from what its file has.
fn again(bytes: &[u8]) -> String {
    let file: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut words = vec!["wattwise".to_owned(), "compare".to_owned()];
    words.extend(text(&file["workload"]["name"]));
    words.extend(text(&file["machine"]).into_iter().flat_map(|m| ["-m".to_owned(), m]));
    let results = file["results"].as_array().into_iter().flatten();
    words.extend(results.filter_map(|r| text(&r["policy"])).flat_map(|p| ["-p".to_owned(), p]));
    words.push("--json".to_owned());
    one_line(&shell::line(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_comparison_says_how_to_make_it_again() {
        let file = r#"{"schema": "wattwise-compare-2", "machine": "bc10", "workload": {"name": "my work"},
            "results": [{"policy": "schedutil"}, {"policy": "ondemand;reboot"}]}"#;
        let told = refused("wattwise-compare-2", file.as_bytes());
        let again = "wattwise compare 'my work' -m bc10 -p schedutil -p 'ondemand;reboot' --json";
        assert!(told.ends_with(again) && !told.contains('\n'), "{told}");
        assert!(refused("wattwise-compare-1", b"{}").ends_with("make it again: wattwise compare --json"));
        assert!(refused("wattwise.info/1", b"{}").ends_with("for the same anew: wattwise info"));
        assert!(refused("x\ny", b"{}").starts_with("has schema 'x y'; expected one of"));
    }
}
