//! Tables of measurements on hardware: what a description may say, what comes of a table, and the page in `docs/notes`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use wattwise_study::hardware::page::section;
use wattwise_study::hardware::table::{Files, Table};
use wattwise_study::hardware::{Change, Effort, bundled, score};

/// A table in memory.
struct Given<'a>(&'a [(&'a str, &'a str)]);

impl Files for Given<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        let found = self.0.iter().find(|(n, _)| *n == name);
        found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "no such file".into())
    }
}

const MACHINE: &str = "[sheet]\nname = 'two-speeds'\nclass = 'desktop'\ncores = 2\nmhz = [1000, 2000]\ntdp_w = 50\nidle = 'skylake'\n\
                       source = 's'\n";

const ROWS: &str = "program,mhz,s,w\nloop,2000,10,30\nloop,1000,20,12\nloop,1500,13.4,18\nother,2000,5,20\nother,1000,10.3,9\n";

const TABLE: &str = r#"
title = "two programs at three speeds"
source = "made up"
licence = "none"
class = "desktop"
kernel = "6.1"
meter = "package"
rows = "rows.csv"
[[quantity]]
column = "s"
unit = "s"
[[quantity]]
column = "w"
unit = "W"
[work]
same = ["program"]
program = ["program"]
reference = { mhz = "2000" }
calibrates = { mhz = "2000" }
label = ["mhz"]
[row]
machine = "machine.toml"
work = "program:s=0.05,khz=2000000,memory=0"
policy = "userspace:khz={mhz}000"
mechanism = "speed"
"#;

fn read(table: &str) -> Result<Table, String> {
    read_rows(table, ROWS)
}

fn read_rows(table: &str, rows: &str) -> Result<Table, String> {
    let files = [("table.toml", table), ("rows.csv", rows), ("machine.toml", MACHINE)];
    Table::read("given", &Given(&files)).map_err(|e| e.to_string())
}

/// Several works for a row's one figure, each with the row's cells; none is no work.
#[test]
fn a_row_may_have_several_works() {
    let with = |works: &str| read(&TABLE.replace("work = \"program:s=0.05,khz=2000000,memory=0\"", works));
    let table = with("work = [\"program:s=0.05\", \"program:s=0.1,khz={mhz}000\"]").unwrap();
    let works = &table.rows[0].setting.as_ref().unwrap().works;
    assert!(works.len() == 2 && works[0] == "program:s=0.05" && !works[1].contains("{mhz}"), "{works:?}");
    let none = with("work = []").unwrap_err();
    assert!(none.contains("no rule says its work"), "{none}");
}

/// A rule's words stand in texts, a later rule's in the place of an earlier one's; none may be a column's name.
#[test]
fn rules_give_words() {
    let with = TABLE.replace(
        "work = \"program:s=0.05,khz=2000000,memory=0\"",
        "work = \"program:s={s0},threads={threads}\"\nwith = { s0 = \"0.05\", threads = \"1\" }",
    ) + "[[rule]]\nwhen = { program = \"other\" }\nwith = { threads = \"2\" }\n";
    let works: Vec<String> =
        read(&with).unwrap().rows.iter().map(|r| r.setting.clone().unwrap().works.concat()).collect();
    assert_eq!(works[0], "program:s=0.05,threads=1");
    assert_eq!(works[3], "program:s=0.05,threads=2");
    let column = read(&with.replace("threads = \"2\"", "mhz = \"2\"")).unwrap_err();
    assert!(column.contains("with.mhz: a column of rows.csv has that name"), "{column}");
    let unknown = read(&with.replace("{s0}", "{s1}")).unwrap_err();
    assert!(unknown.contains("no column 's1'"), "{unknown}");
}

#[test]
fn a_program_without_memory_takes_the_clocks_ratio_and_less_watts() {
    let table = read(TABLE).unwrap();
    let scored = score(&[table], Effort::default(), &|_| {});
    let s = &scored.scores;
    assert_eq!((s.tables, s.rows, s.reference_rows, s.calibrating_rows, s.predicted_rows), (1, 5, 2, 2, 3));
    assert_eq!((s.comparisons, s.differing, s.sign_right, s.tau), (6, 6, Some(1.0), Some(1.0)));
    let all = &scored.compared[0].comparisons;
    let times: Vec<f64> = all.iter().filter(|c| c.quantity == 0).map(|c| c.predicted).collect();
    // 2000 MHz over 1000, 1500 and 1000; wake-ups and ticks take a thousandth.
    for (time, expected) in times.iter().zip([2.0, 4.0 / 3.0, 2.0]) {
        assert!((time / expected - 1.0).abs() < 5e-3, "{times:?}");
    }
    for c in all.iter().filter(|c| c.quantity == 1) {
        assert!(c.predicted < 1.0 && c.low < c.predicted && c.predicted < c.high, "{c:?}");
    }
    // One of both know-nothings has every sign, the other none.
    assert_eq!((s.know_nothing[0].sign_right, s.know_nothing[1].sign_right), (Some(0.0), Some(1.0)));
}

/// What was published of other rows than those that calibrate changes no prediction.
#[test]
fn predictions_know_the_calibrating_rows_alone() {
    let predicted = |rows: &str| {
        let files = [("table.toml", TABLE), ("rows.csv", rows), ("machine.toml", MACHINE)];
        let table = Table::read("given", &Given(&files)).unwrap();
        let scored = score(&[table], Effort { quick: true, ..Effort::default() }, &|_| {});
        scored.compared[0].comparisons.iter().map(|c| c.predicted).collect::<Vec<_>>()
    };
    let before = predicted(ROWS);
    assert_eq!(predicted(&ROWS.replace("loop,1000,20,12", "loop,1000,99,1")), before);
    let calibrated = predicted(&ROWS.replace("loop,2000,10,30", "loop,2000,10,45"));
    assert_ne!(calibrated, before, "the calibrating one does");
}

/// A machine on which lower clocks save no watts: the change is in the draws that are run.
#[test]
fn a_changed_machine_is_what_is_run() {
    let powers = |change| {
        let table = Table::read(
            "given",
            &Given(&[("table.toml", TABLE), ("rows.csv", ROWS), ("machine.toml", MACHINE)]),
        );
        let scored = score(&[table.unwrap()], Effort { quick: true, change }, &|_| {});
        let all = &scored.compared[0].comparisons;
        all.iter().filter(|c| c.quantity == 1).map(|c| c.predicted).collect::<Vec<_>>()
    };
    let flat: Change = |m| {
        for levels in m.kinds.iter_mut().map(|k| &mut k.levels) {
            let watts = levels[0].busy_w;
            levels.iter_mut().for_each(|l| (l.busy_w, l.stall_w) = (watts, watts));
        }
    };
    let (own, flat) = (powers(None), powers(Some(flat)));
    assert!(own.iter().zip(&flat).all(|(own, flat)| *own < 0.6 && *flat > 0.9), "{own:?} {flat:?}");
}

#[test]
fn a_mistake_is_one_line_with_its_place() {
    let two = "calibrates = { mhz = [\"2000\", \"1000\"] }";
    for (from, to, parts) in [
        ("column = \"w\"", "column = \"ww\"", ["given/table.toml", "no column 'ww'"]),
        ("unit = \"W\"", "unit = \"watt\"", ["line 14", "unknown word"]),
        ("unit = \"W\"", "unit = \"W\"\nscale = -1", ["scale = -1", "expected a number from 1e-9"]),
        ("unit = \"W\"", "unit = \"W\"\nscale = nan", ["scale = NaN", "to 1e9"]),
        (
            "mechanism = \"speed\"",
            "mechanism = \"luck\"",
            ["row 2: mechanism 'luck'", "expected speed, boost"],
        ),
        ("{mhz}", "{hz}", ["row 2", "no column 'hz'"]),
        ("{mhz}", "{mhz", ["row 2", "without its }"]),
        ("calibrates = { mhz = \"2000\" }", two, ["rows 2 and 3", "at most one"]),
        ("machine = \"machine.toml\"", "machine = \"gone.toml\"", ["gone.toml", "expected a machine file"]),
        ("rows = \"rows.csv\"", "rows = \"gone.csv\"", ["given/gone.csv", "no such file"]),
    ] {
        let error = read(&TABLE.replace(from, to)).unwrap_err();
        assert!(parts.iter().all(|p| error.contains(p)) && error.lines().count() == 1, "{error}");
    }
}

/// No machine measures it, and no line is as long as that.
#[test]
fn a_number_of_300_digits_is_a_slip() {
    for long in ["9".repeat(300), "9".repeat(400)] {
        let error = read_rows(TABLE, &ROWS.replace("13.4", &long)).unwrap_err();
        assert!(error.contains("given/rows.csv: row 4: s = '9999"), "{error}");
        assert!(error.ends_with("9…': expected a number from 0 to 1e15") && error.len() < 160, "{error}");
    }
}

/// A policy that the machine has not is no end: its rows are counted, with the reason.
#[test]
fn what_cannot_be_run_is_counted() {
    let table = read(&TABLE.replace("userspace:khz={mhz}000", "userspace:khz={mhz}000+cmax=C99")).unwrap();
    let scored = score(&[table], Effort { quick: true, ..Effort::default() }, &|_| {});
    assert_eq!((scored.scores.predicted_rows, scored.scores.unsaid_rows), (0, 3));
    let unsaid = &scored.scores.by_table[0].unsaid;
    assert!(unsaid[0].why.contains("C99"), "{unsaid:?}");
}

/// Tables that are run in seconds, without optimisation too.
const SMALL: [&str; 3] = ["rpi2b-aircrack", "rock5b-dmc", "i7-5557u-smt"];

/// The page is what the command makes: looked at in the small tables, which are run anew.
#[test]
fn the_page_is_what_the_tables_come_to() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/notes/hardware.md");
    let page = std::fs::read_to_string(path).unwrap();
    let again = "wattwise machines score policies --page docs/notes/hardware.md";
    let mut tables = bundled::tables().unwrap();
    for table in &tables {
        let line = format!("\n| {} | {} |", table.name, table.rows.len());
        assert!(page.contains(&line), "{line:?} is not on the page: {again}");
    }
    tables.retain(|t| SMALL.contains(&t.name.as_str()));
    assert_eq!(tables.len(), SMALL.len());
    let scored = score(&tables, Effort::default(), &|_| {});
    for ((table, compared), part) in tables.iter().zip(&scored.compared).zip(&scored.scores.by_table) {
        let made = section(table, compared, part);
        assert!(page.contains(&made), "{} has changed: {again}\n{made}", table.name);
    }
}
