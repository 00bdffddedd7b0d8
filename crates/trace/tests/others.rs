//! Other programs' share of a recording made here, against a sum over what perf prints of the same file.

#![cfg(feature = "record")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use wattwise_trace::record::{RecordOptions, run};
use wattwise_trace::{ImportOptions, Source, import};

/// Numbers of threads, with blanks around each.
fn list(numbers: impl Iterator<Item = String>) -> String {
    numbers.fold(" ".to_owned(), |all, n| all + &n + " ")
}

fn names_in(folder: &str) -> Vec<String> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    names.map(|e| e.file_name().to_string_lossy().into_owned()).filter(|n| n.parse::<u32>().is_ok()).collect()
}

/// Whether a task is a child of kthreadd.
fn is_kernels(task: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{task}/stat")).unwrap_or_default();
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    after.split_whitespace().nth(1) == Some("2")
}

/// Programs called `wattwise` keep the CPUs busy beside the work, as another user's would.
#[test]
fn other_programs_share_is_that_of_a_sum_over_perfs_script() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::copy("/bin/sh", at("wattwise")).expect("a shell");
    // By a shell that ends: it is nobody's child whom we know, as another user's program is.
    // Two for each CPU: one that has a CPU alone never switches, and perf's sum is made from switches.
    let begin = r#"n=$((2 * $(nproc))); while [ $n -gt 0 ]; do "$0" -c 'while :; do :; done' >/dev/null 2>&1 & echo $!; n=$((n-1)); done"#;
    let started = Command::new("sh").args(["-c", begin]).arg(at("wattwise")).output().expect("a shell");
    let beside = String::from_utf8_lossy(&started.stdout).into_owned();
    let script =
        format!("echo $$ >{}; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done", at("pid").display());
    let options = RecordOptions::new(&at("r.perf"), ["sh", "-c", &script].map(str::to_owned).to_vec());
    let recorded = run(&options);
    let recorder = list(names_in("/proc/self/task").into_iter());
    let kernel = list(names_in("/proc").into_iter().filter(|t| is_kernels(t)));
    _ = Command::new("kill").args(beside.split_whitespace()).status();
    match recorded {
        Err(e) if e.is_impossible() => return println!("skipped: {e}"),
        other => drop(other.expect("a recording")),
    }
    let command = fs::read_to_string(at("pid")).expect("its process");
    let Some((others, all)) = summed(&at("r.perf"), [&command, &recorder, &kernel]) else { return };
    let w = import(Source::Path(at("r.perf")), &ImportOptions::default()).expect("a recording");
    let told = w.recorded.expect("recorded").strangers;
    assert!((told.share() - others / all).abs() < 0.01, "{told:?}, summed {others} of {all} s");
    assert!(told.share() > 0.2, "the other wattwise is another program: {told:?}");
}

/// Seconds of other programs and of all, by perf and awk; none where there is no perf.
fn summed(file: &Path, [command, recorder, kernel]: [&str; 3]) -> Option<(f64, f64)> {
    let perf = Command::new("perf")
        .args(["script", "-F", "comm,tid,cpu,time,event,trace", "-i"])
        .arg(file)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut perf) = perf else {
        println!("skipped: no perf here to hold it against");
        return None;
    };
    let text = perf.stdout.take().expect("piped");
    let sums = Command::new("awk")
        .args(["-v", &format!("command={}", command.trim()), "-v", &format!("recorder={recorder}")])
        .args([
            "-v",
            &format!("kernel={kernel}"),
            "-f",
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/others.awk"),
        ])
        .stdin(text)
        .output()
        .expect("awk");
    perf.wait().expect("perf ends");
    let sums = String::from_utf8_lossy(&sums.stdout);
    let mut numbers = sums.split_whitespace().filter_map(|n| n.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}
