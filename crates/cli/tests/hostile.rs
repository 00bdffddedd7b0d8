//! Hostile names through the program itself: in workloads, machines, recordings, captures, result files and file names. What is
//! printed is looked at as a terminal would, what is printed as a command is given to a shell.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../figure/tests/support/hostile.rs"]
mod hostile;
#[path = "support/shown.rs"]
mod shown;
#[path = "support/hostile_tree.rs"]
mod tree;

use hostile::names;
use shown::{harmless, printed, wattwise};
use std::path::Path;
use std::process::Command;
use tree::tree;

/// The arguments that a shell gives to `wattwise` in a line that was printed, which does nothing else.
fn pasted(line: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("sudo() {{ \"$@\"; }}\nwattwise() {{ printf '%s\\0' \"$@\"; }}\n{line}\n");
    for shell in ["bash", "sh"] {
        let out = Command::new(shell).args(["-c", &script]).current_dir(folder.path()).output().unwrap();
        let words = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(words.is_empty() && out.status.success(), "{shell}: {line}: {words}");
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "{shell}: something ran: {line}");
    }
    let out = Command::new("bash").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    let all = String::from_utf8(out.stdout).unwrap();
    all.strip_suffix('\0').unwrap_or(&all).split('\0').map(str::to_owned).collect()
}

/// Names that a file may have.
fn file_names(seed: u64, n: usize) -> Vec<String> {
    let mut all =
        names(seed, 400).into_iter().filter(|name| !name.contains(['/', '\0']) && !name.trim().is_empty());
    let mut taken: Vec<String> =
        ["a b", "-x", "$(touch x)", "it's; touch x #", "\u{1b}[2J\u{202e}", "two\nlines"]
            .map(str::to_owned)
            .into();
    taken.extend(all.by_ref().skip(30).filter(|name| name.len() < 200).take(n.saturating_sub(6)));
    taken
}

/// A workload whose every name is a stranger's.
fn workload(names: &[String]) -> String {
    let mut file = toml::Table::new();
    file.insert("name".into(), names[0].clone().into());
    file.insert("summary".into(), names[1].clone().into());
    file.insert("reference_khz".into(), 1_700_000.into());
    let task = |name: &String| {
        let mut task: toml::Table =
            "role = 'foreground'\nrounds = 2\nsteps = [{ run_us = 2200 }]".parse().unwrap();
        task.insert("name".into(), name.clone().into());
        toml::Value::from(task)
    };
    file.insert("task".into(), names[2..].iter().map(task).collect::<Vec<_>>().into());
    toml::to_string(&file).unwrap()
}

#[test]
fn a_workload_of_hostile_names_acts_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    for names in names(21, 120).chunks(24) {
        std::fs::write(folder.path().join("w.toml"), workload(names)).unwrap();
        let compare = |format: &[&str]| {
            let usual = ["compare", "w.toml", "--machine", "recording-vm", "-p", "performance", "--exact"];
            printed(folder.path(), &[&usual[..], format].concat())
        };
        compare(&[]);
        let json: serde_json::Value = serde_json::from_str(&compare(&["--json"])).unwrap();
        assert!(json["workload"]["name"].is_string());
        let csv = compare(&["--csv"]);
        let rows: Vec<csv::StringRecord> =
            csv::Reader::from_reader(csv.as_bytes()).records().map(Result::unwrap).collect();
        assert!(rows.iter().all(|r| !r[0].trim_start().starts_with(['=', '+', '-', '@'])), "{csv}");
        compare(&["--markdown"]);
        let html = compare(&["--report", "-"]);
        assert_eq!(html.matches("<script").count(), html.matches("</script>").count());
        assert!(!html.contains("<script>alert"));
        compare(&["--ftrace", "-"]);
    }
}

/// The issue's own case: a spreadsheet would calculate the name.
#[test]
fn a_name_is_no_formula() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("w.toml"), workload(&["=1+1".into(), "x".into(), "a".into()])).unwrap();
    let csv = printed(
        folder.path(),
        &["compare", "w.toml", "-m", "recording-vm", "-p", "performance", "--exact", "--csv"],
    );
    assert!(csv.lines().skip(1).all(|line| line.starts_with("'=1+1,")), "{csv}");
}

/// A C-state's name goes into commands: one that is none is refused, with its file, its key and what is allowed.
#[test]
fn a_machine_file_has_no_name_that_a_shell_acts_on() {
    let folder = tempfile::tempdir().unwrap();
    let whole = printed(folder.path(), &["machines", "show", "i7-4510u", "--file"]);
    let mut refused = 0;
    for name in names(22, 60).iter().chain(&["C6=off; touch x #".to_owned()]) {
        let mut file: toml::Table = whole.parse().unwrap();
        let states = file["kind"][0]["idle"]["states"].as_array_mut().unwrap();
        let at = states.len() - 1;
        states[at].as_table_mut().unwrap().insert("name".into(), name.clone().into());
        for pstate in
            file["package"].get_mut("idle").and_then(toml::Value::as_array_mut).into_iter().flatten()
        {
            pstate.as_table_mut().unwrap().insert("needs".into(), name.clone().into());
        }
        file["kind"][0].as_table_mut().unwrap()["idle"].as_table_mut().unwrap().remove("sources");
        file["package"].as_table_mut().unwrap().remove("sources");
        std::fs::write(folder.path().join("m.toml"), toml::to_string(&file).unwrap()).unwrap();
        let out = wattwise(
            folder.path(),
            &["compare", "burst", "-m", "m.toml", "-p", "schedutil+cmax=C1", "--exact"],
        );
        let text = harmless(&out);
        match out.status.code() {
            Some(0) => {
                let line = applied(&text);
                let words = line.map(pasted).unwrap_or_default();
                assert!(words.iter().all(|w| !w.contains([' ', ';', '$', '`'])), "{name:?}: {words:?}");
            }
            code => {
                assert_eq!((code, text.lines().count()), (Some(2), 1), "{text}");
                assert!(text.contains("m.toml: kind."), "{text}");
                let said = text.contains("name = ") && text.contains("letters, digits and _.+-")
                    || text.contains("empty");
                assert!(said, "{text}");
                refused += 1;
            }
        }
    }
    assert!(refused > 40, "{refused}");
}

/// What is printed as a command is one, whatever the file is called: of `import`, and of a report's own call.
#[test]
fn a_file_of_any_name_is_one_argument() {
    let home = tempfile::tempdir().unwrap();
    let trace = printed(
        home.path(),
        &["compare", "burst", "-m", "recording-vm", "-p", "performance", "--exact", "--ftrace", "-"],
    );
    for name in file_names(23, 24) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(&name), &trace).unwrap();
        let text = printed(folder.path(), &["import", "--", &name]);
        let line = text.lines().find_map(|l| l.strip_prefix("replay it: ")).unwrap();
        let words = pasted(line);
        let file = Path::new(&words[1]);
        assert_eq!((words.len(), words[0].as_str()), (2, "compare"), "{words:?}");
        assert!(
            folder.path().join(file).ends_with(&name) && !words[1].starts_with('-'),
            "{name:?}: {words:?}"
        );
        harmless(&wattwise(folder.path(), &["trace", "--", &name]));
    }
}

#[test]
fn a_report_has_the_call_that_made_it() {
    for name in file_names(24, 12) {
        let folder = tempfile::tempdir().unwrap();
        let report = format!("--report={name}.html");
        let args =
            ["ab", "--machine", "recording-vm", "performance", "powersave", "--workload", "burst", &report];
        printed(folder.path(), &args);
        let html = std::fs::read_to_string(folder.path().join(format!("{name}.html"))).unwrap();
        let entities = ["&#60;", "&#62;", "&#34;", "&#39;", "&#38;"].iter().zip(["<", ">", "\"", "'", "&"]);
        let shown = html.split("id=\"command\"><code>").nth(1).unwrap().split("</code>").next().unwrap();
        let line = entities.fold(shown.to_owned(), |text, (entity, c)| text.replace(entity, c));
        assert_eq!(pasted(&line), args, "{line}");
    }
}

#[test]
fn a_capture_of_hostile_names_acts_nowhere() {
    for names in names(25, 120).chunks(30) {
        let folder = tempfile::tempdir().unwrap();
        tree(folder.path(), names);
        let root = folder.path().to_str().unwrap();
        for args in [
            &["info", "--root", root][..],
            &["info", "--root", root, "--json"],
            &["set", "--root", root, "--dry-run", "--cstate", "2=off"],
            &["set", "--root", root, "--dry-run", "--cstate", "no such state=off"],
            &["set", "--root", root, "--dry-run", "--governor", "none"],
            &["cpufreq-info", "--root", root],
        ] {
            let text = harmless(&wattwise(folder.path(), args));
            let line = applied(&text);
            assert!(
                line.is_none_or(|l| pasted(l).iter().all(|w| !w.contains([' ', ';', '$', '`']))),
                "{text}"
            );
        }
    }
}

/// The command that a comparison offers.
fn applied(text: &str) -> Option<&str> {
    let heads = [
        "To apply it: ",
        "To apply it on such a machine: ",
        "To apply it, as root: ",
        "To apply it on such a machine, as root: ",
    ];
    text.lines().find_map(|l| heads.iter().find_map(|head| l.strip_prefix(head)))
}

/// Blanks are in life: pseries calls a state `Shared Cede`. The model has a plain name for it, by which `set` knows it.
#[test]
fn a_kernels_name_with_a_blank_is_known_by_a_plain_one() {
    let folder = tempfile::tempdir().unwrap();
    tree(folder.path(), &["plain".to_owned()]);
    for cpu in 0..2 {
        for (state, name) in ["snooze", "CEDE", "Shared Cede"].iter().enumerate() {
            let at = folder.path().join(format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}/name"));
            std::fs::write(at, name).unwrap();
        }
    }
    let root = folder.path().to_str().unwrap();
    for name in ["Shared_Cede=off", "Shared Cede=off"] {
        let shown = printed(folder.path(), &["set", "--root", root, "--dry-run", "--cstate", name]);
        assert!(shown.contains("Shared Cede"), "{shown}");
    }
    let shown = printed(folder.path(), &["info", "--root", root]);
    assert!(shown.contains("Shared Cede"), "{shown}");
}
