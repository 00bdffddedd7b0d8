//! Hostile texts in the files that the program goes on with or reads again: logs of `ab` and `tune`, journals, recordings. Nothing
//! in them acts on a terminal, begins a line of its own, or changes what an exported recording says.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../figure/tests/support/hostile.rs"]
mod hostile;
#[path = "support/hostile_page.rs"]
mod page;
#[path = "support/shown.rs"]
mod shown;

use hostile::names;
use serde_json::Value;
use shown::{harmless, printed, wattwise};
use std::collections::BTreeMap;
use std::path::Path;

/// A text that would be two lines of its own where it is not stopped, with something hostile after it.
fn texts(seed: u64, n: usize) -> Vec<String> {
    let forged = |name: String| format!("{name}\nTo apply it: touch x\r\nwattwise: {name}");
    names(seed, n).into_iter().map(forged).collect()
}

/// What was printed has no line that the text would have made.
fn no_line_is_forged(shown: &str) {
    let forged = |l: &&str| l.starts_with("To apply it: touch") || l.trim() == "touch x";
    assert_eq!(shown.lines().find(forged), None, "{shown}");
}

/// Every text in a value for which `is_free` says so by its field's name, in the place of the next of `texts`.
fn replaced(value: &mut Value, is_free: &dyn Fn(&str) -> bool, texts: &mut dyn Iterator<Item = String>) {
    fn each(
        value: &mut Value,
        free: bool,
        is_free: &dyn Fn(&str) -> bool,
        texts: &mut dyn Iterator<Item = String>,
    ) {
        match value {
            Value::String(text) if free => *text = texts.next().unwrap(),
            Value::Array(items) => items.iter_mut().for_each(|v| each(v, free, is_free, texts)),
            Value::Object(fields) => {
                fields.iter_mut().for_each(|(name, v)| each(v, is_free(name), is_free, texts));
            }
            _ => {}
        }
    }
    each(value, false, is_free, texts);
}

fn lines(file: &Path) -> Vec<Value> {
    std::fs::read_to_string(file).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn write(file: &Path, lines: &[Value]) {
    std::fs::write(file, lines.iter().map(|l| format!("{l}\n")).collect::<String>()).unwrap();
}

fn tags(page: &Path) -> BTreeMap<String, usize> {
    page::tags(&std::fs::read_to_string(page).unwrap())
}

/// The texts of an experiment's file that are no words of its format.
const OF_AB: &[&str] = &[
    "version",
    "watts_of",
    "machine",
    "name",
    "policy",
    "command",
    "why",
    "by",
    "dropped",
    "disturbed",
    "budget",
    "metric",
];

#[test]
fn a_log_of_ab_acts_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let ab = "ab --of time --idle-floor 0 --warm-up 1 --pairs 3 -o ab.jsonl true true";
    // Whether a pair counts is the machine's affair; the file is there in any case.
    harmless(&wattwise(folder.path(), &ab.split(' ').collect::<Vec<_>>()));
    let whole = lines(&at("ab.jsonl"));
    let with = |seed: u64, free: &[&str], plain: bool| {
        let hostile = texts(seed, 400).into_iter().cycle();
        let mut stock: Box<dyn Iterator<Item = String>> = if plain {
            Box::new((0..).map(|n| format!("name {n}")))
        } else {
            Box::new(hostile.skip(7 * seed as usize))
        };
        let mut now = whole.clone();
        now.iter_mut().for_each(|line| replaced(line, &|field| free.contains(&field), &mut *stock));
        // Why a pair was left out is a sentence of the file's.
        let why = stock.next().unwrap();
        if let Some(run) = now.iter_mut().rev().find_map(|l| l.get_mut("run")) {
            run["dropped"] = why.into();
        }
        write(&at("h.jsonl"), &now);
    };
    with(0, OF_AB, true);
    printed(folder.path(), &["report", "h.jsonl", "--report", "plain.html"]);
    for seed in 31..43 {
        with(seed, OF_AB, false);
        no_line_is_forged(&printed(folder.path(), &["report", "h.jsonl"]));
        no_line_is_forged(&printed(folder.path(), &["report", "h.jsonl", "h.jsonl"]));
        printed(folder.path(), &["report", "h.jsonl", "--report", "h.html"]);
        assert_eq!(tags(&at("h.html")), tags(&at("plain.html")), "{seed}");
        // To go on, the plan must be one: first with its commands, then with what is refused.
        let shown: Vec<&str> = OF_AB
            .iter()
            .copied()
            .filter(|f| !["command", "policy", "watts_of", "metric"].contains(f))
            .collect();
        for free in [&shown[..], &["policy"], &["watts_of"], &["metric"]] {
            with(seed, free, false);
            for format in [
                &["ab", "--idle-floor", "0", "--resume", "h.jsonl"][..],
                &["ab", "--idle-floor", "0", "--json", "--resume", "h.jsonl"],
            ] {
                no_line_is_forged(&harmless(&wattwise(folder.path(), format)));
            }
        }
        let mut unknown = whole.clone();
        unknown[0]["header"]["schema"] = texts(seed, 400)[seed as usize].clone().into();
        write(&at("h.jsonl"), &unknown);
        for args in [["ab", "--resume", "h.jsonl"], ["report", "h.jsonl", "--report=-"]] {
            let said = harmless(&wattwise(folder.path(), &args));
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
    assert!(!at("x").exists());
}

/// The texts of a proof's log that are no words of its format.
const OF_PROVE: &[&str] = &["version", "machine", "name", "policy", "by", "work", "scopes", "stopped"];

#[test]
fn a_log_of_prove_acts_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let prove = "prove --root emulated:amd-laptop --for 2400ms --block 200ms -o p.jsonl current powersave";
    printed(folder.path(), &prove.split(' ').collect::<Vec<_>>());
    let mut whole = lines(&at("p.jsonl"));
    whole[0]["proof"]["predicted"] =
        serde_json::json!({"ratio": 0.9, "low": 0.8, "high": 1.1, "work": "w", "machine": "m"});
    let last = whole.len() - 1;
    whole[last]["end"] = serde_json::json!({"stopped": "why"});
    let with = |seed: usize, plain: bool| {
        let mut stock: Box<dyn Iterator<Item = String>> = match plain {
            true => Box::new((0..).map(|n| format!("name {n}"))),
            false => Box::new(texts(seed as u64, 400).into_iter().cycle()),
        };
        let mut now = whole.clone();
        now.iter_mut().for_each(|line| replaced(line, &|field| OF_PROVE.contains(&field), &mut *stock));
        write(&at("h.jsonl"), &now);
    };
    with(0, true);
    printed(folder.path(), &["report", "h.jsonl", "--report", "plain.html"]);
    for seed in 31..39 {
        with(seed, false);
        no_line_is_forged(&printed(folder.path(), &["report", "h.jsonl"]));
        printed(folder.path(), &["report", "h.jsonl", "--report", "h.html"]);
        assert_eq!(tags(&at("h.html")), tags(&at("plain.html")), "{seed}");
        no_line_is_forged(&harmless(&wattwise(folder.path(), &["prove", "--resume", "h.jsonl"])));
    }
    assert!(!at("x").exists());
}

#[test]
fn a_log_of_tune_acts_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (name, run_us) in [("a", 4000), ("b", 9000)] {
        let work = format!(
            "name = '{name}'\nsummary = 'bursts'\n[[task]]\nname = 'work'\nrounds = 20\n\
             steps = [{{ run_us = [2000, {run_us}] }}, {{ sleep_us = [1000, 2000] }}]\n"
        );
        std::fs::write(at(&format!("{name}.toml")), work).unwrap();
    }
    let tune = "tune a.toml b.toml -m thinkpad-r51 --space burst --budget trials=4 --replicas 40 -o p.toml --log log.jsonl";
    printed(folder.path(), &tune.split(' ').collect::<Vec<_>>());
    let mut whole = lines(&at("log.jsonl"));
    whole.retain(|line| line.get("test").is_none());
    let fields: Vec<String> = whole[0]["plan"].as_object().unwrap().keys().cloned().collect();
    for (n, text) in texts(41, 60).iter().enumerate() {
        let mut now = whole.clone();
        let field = &fields[n % fields.len()];
        let value = &mut now[0]["plan"][field];
        match value {
            Value::String(_) => *value = text.clone().into(),
            Value::Array(_) => *value = vec![text.clone()].into(),
            _ => {
                let trial = now.iter_mut().find_map(|l| l.get_mut("trial")).unwrap();
                trial["policy"] = text.clone().into();
                trial["failed"] = serde_json::json!([0, text]);
            }
        }
        write(&at("h.jsonl"), &now);
        let said = harmless(&wattwise(
            folder.path(),
            &["tune", "--resume", "h.jsonl", "--budget", "trials=4", "-o", "q.toml"],
        ));
        no_line_is_forged(&said);
    }
}

#[test]
fn a_journal_acts_nowhere() {
    use std::os::unix::fs::PermissionsExt;
    for text in texts(51, 60) {
        let folder = tempfile::tempdir().unwrap();
        let (tree, journal) = (folder.path().join("tree"), folder.path().join("tree.journal"));
        for (folder, mode) in [(&tree, 0o755), (&journal, 0o700)] {
            std::fs::create_dir(folder).unwrap();
            std::fs::set_permissions(folder, PermissionsExt::from_mode(mode)).unwrap();
        }
        std::fs::create_dir_all(tree.join("sys/devices/system/cpu/cpu0")).unwrap();
        let line = |schema: &str, file: &str| {
            let header = serde_json::json!({"header": {"schema": schema, "pid": 1, "started": 1, "boot_id": "", "command": text}});
            let item =
                serde_json::json!({"item": {"target": {"file": file}, "what": text, "original": text}});
            format!("{header}\n{item}\n\"ready\"\n")
        };
        let state = "sys/devices/system/cpu/cpu0/cpuidle/state0/disable";
        for (n, journal_text) in
            [line("wattwise.journal/1", state), line("wattwise.journal/1", &text), line(&text, state)]
                .iter()
                .enumerate()
        {
            let file = journal.join(format!("{:06}.jsonl", n + 1));
            std::fs::write(&file, journal_text).unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        }
        for args in [
            &["restore", "--root", "tree", "--dry-run"][..],
            &["restore", "--root", "tree", "--dry-run", "--json"],
            &["restore", "--root", "tree"],
        ] {
            let said = harmless(&wattwise(folder.path(), args));
            assert!(said.contains("apply it"), "{args:?}: {said}");
            no_line_is_forged(&said);
        }
    }
}

/// Two tasks that wake each other and one that is preempted, by these names.
fn work(names: &[String]) -> String {
    let mut file: toml::Table = "summary = 'x'\nreference_khz = 1_700_000".parse().unwrap();
    file.insert("name".into(), names[0].clone().into());
    let task = |name: &String| {
        let mut task: toml::Table =
            "rounds = 3\nsteps = [{ run_us = 2200 }, { sleep_us = 900 }]".parse().unwrap();
        task.insert("name".into(), name.clone().into());
        toml::Value::from(task)
    };
    file.insert("task".into(), names.iter().map(task).collect::<Vec<_>>().into());
    toml::to_string(&file).unwrap()
}

/// A replay written as a recording says the same whatever its tasks are called.
#[test]
fn no_name_forges_a_line_of_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let imported = |names: &[String]| -> Value {
        std::fs::write(folder.path().join("w.toml"), work(names)).unwrap();
        let export = [
            "compare",
            "w.toml",
            "--machine",
            "recording-vm",
            "-p",
            "performance",
            "--exact",
            "--ftrace",
            "t",
            "--perfetto",
            "p",
        ];
        printed(folder.path(), &export);
        printed(folder.path(), &["trace", "t"]);
        printed(folder.path(), &["import", "t"]);
        serde_json::from_str(&printed(folder.path(), &["import", "t", "--json"])).unwrap()
    };
    let said = |of: &Value| {
        ["cpus", "recorded_khz", "span_s", "events", "lost", "busy_s"].map(|field| of[field].clone())
    };
    let plain: Vec<String> = (0..8).map(|n| format!("task{n}")).collect();
    let wanted = said(&imported(&plain));
    assert!(wanted[3].as_u64() > Some(50), "{wanted:?}");
    let stock: Vec<String> = names(61, 320).into_iter().filter(|n| !n.trim().is_empty()).collect();
    for names in stock.chunks_exact(8) {
        assert_eq!(said(&imported(names)), wanted, "{names:?}");
    }
}
