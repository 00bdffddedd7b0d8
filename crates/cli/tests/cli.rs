//! The program from outside: exit codes, one line for each mistake, and that nothing is half done.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

fn wattwise(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wattwise")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs what must fail with this code, in one line that holds these words.
fn refused(args: &[&str], code: i32, words: &[&str]) {
    let out = wattwise(args);
    let message = text(&out.stderr);
    assert_eq!(out.status.code(), Some(code), "{args:?}: {message}");
    assert!(out.stdout.is_empty(), "{args:?} printed a result");
    for w in words {
        assert!(message.contains(w), "{args:?}: no '{w}' in: {message}");
    }
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    assert!(message.starts_with("wattwise: "), "{message}");
}

/// What the argument parser finds is told as all else is: one line, with its hint.
#[test]
fn mistakes_in_the_call_are_one_line() {
    refused(&["compare", "--replicas", "3"], 2, &["--replicas", "8..=4096", "--help"]);
    refused(&["compare", "--exakt"], 2, &["--exakt", "'--exact'"]);
    refused(&["compare", "--exact", "--replicas", "16"], 2, &["cannot be used with"]);
    refused(&["record", "--", "true"], 2, &["--output <FILE>"]);
    refused(&["compaer"], 2, &["compaer", "'compare'"]);
    refused(&["compare", "--best", "speed"], 2, &["speed", "energy, own-energy, edp, time"]);
    refused(&["compare", "build", "-o", "a.html"], 2, &["'-o'", "--report FILE", "--json > FILE"]);
    // Without a command there is nothing to correct: the help.
    let out = wattwise(&[]);
    assert!(out.status.code() == Some(2) && text(&out.stderr).contains("Commands:"));
}

/// Help is output like another: where it cannot be written, that is a failure, and where its reader has gone, none.
#[test]
fn help_that_cannot_be_printed_is_a_failure() {
    for call in [&["help"][..], &["--version"], &["compare", "--help"], &["policies"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let out = Command::new(env!("CARGO_BIN_EXE_wattwise")).args(call).stdout(full).output().unwrap();
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{call:?}: {said}");
        assert!(said.contains("No space left") && said.lines().count() == 1, "{call:?}: {said}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let out = Command::new(env!("CARGO_BIN_EXE_wattwise")).args(call).stdout(writer).output().unwrap();
        assert_eq!((out.status.code(), text(&out.stderr)), (Some(0), String::new()), "{call:?}");
    }
}

/// A log is output too: that its disk is full is no mistake in the call.
#[test]
fn a_log_that_cannot_be_written_is_a_failure() {
    let ab = "ab --root emulated:core-i5-2gen --of time -o /dev/full performance powersave -- true";
    let prove = "prove --root emulated:core-i5-2gen -o /dev/full performance powersave";
    for call in [ab, prove] {
        let call: Vec<&str> = call.split(' ').collect();
        refused(&call, 1, &["/dev/full", "No space left"]);
    }
}

#[test]
fn unknown_names_suggest_the_nearest() {
    refused(&["bench", "locks", "--lock", "mutexee"], 2, &["--lock", "mutexee", "glibc", "mcs"]);
    refused(&["bench", "locks", "--cs", "5-2"], 2, &["--cs", "5-2", "exp:3.7"]);
    refused(&["bench", "locks", "--threads", "0"], 2, &["--threads", "1 to 1024"]);
    refused(&["bench", "locks", "--machine", "xeon-4210", "--lock", "spin"], 2, &["mcs:WAIT", "mwait-C6"]);
    refused(&["compare", "bild"], 2, &["bild", "'build'"]);
    refused(&["compare", "burst", "--machine", "thinkpad"], 2, &["thinkpad-r51"]);
    refused(&["compare", "burst", "-p", "schedutl"], 2, &["'schedutil'"]);
    refused(&["compare", "burst", "-p", "burst:bsy=3"], 2, &["bsy", "busy"]);
    refused(&["compare", "burst", "-p", "burst:busy=-3"], 2, &["busy=-3", "0 to"]);
    refused(&["policies", "show", "ondemnd"], 2, &["'ondemand'"]);
    refused(&["comparre"], 2, &["compare"]);
    refused(&["compare", "--max-slowdown", "fast"], 2, &["3%"]);
    for none in ["0", "0us", "-1us", "nan", "inf"] {
        let limit = format!("--latency-limit={none}");
        refused(&["compare", "burst", &limit], 2, &["--latency-limit", "expected a time above 0"]);
    }
    // Nobody means 1000 %: above 1 a number needs its unit, wherever a share is taken.
    for (args, told) in [
        (&["compare", "--max-slowdown", "10"][..], "10% (or 1.1x, or 0.1)"),
        (&["compare", "--max-slowdown", "1.1"], "1.1% (or 1.011x, or 0.011)"),
        (&["compare", "--memory-bound", "20"], "20% or 0.2"),
        (&["compare", "-p", "schedutil+max=60"], "such as 60%"),
        (&["ab", "--others", "10", "a", "b", "--", "true"], "10% or 0.1"),
        (&["ab", "--effect", "2", "a", "b", "--", "true"], "2% or 0.02"),
        (&["ab", "--effect", "1", "a", "b", "--", "true"], "less than 100%"),
        (&["ab", "--chance", "90", "a", "b", "--", "true"], "90% or 0.9"),
        (&["ab", "--confidence", "95", "a", "b", "--", "true"], "95% or 0.95"),
        (&["ab", "--budget", "0", "a", "b", "--", "true"], "expected more than 0"),
        (&["prove", "--block", "0s", "a", "b"], "expected more than 0"),
        (&["set", "--tstate", "50", "--dry-run"], "50% or 0.5"),
        (&["set", "--max", "50", "--dry-run"], "50%, 50MHz or 50GHz"),
        (&["coreidle", "tune", "--slowdown", "5", "--", "true"], "5% (or 1.05x, or 0.05)"),
        (&["coreidle", "tune", "--bound", "1.5", "--", "true"], "or 1.5x"),
        (&["emulate", "bc10", "/", "--load", "50"], "50% or 0.5"),
    ] {
        refused(args, 2, &[told]);
    }
}

#[test]
fn bad_files_are_named_with_place_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    refused(&["compare", &file("empty.perf", b"")], 2, &["empty.perf"]);
    refused(&["compare", &file("noise.data", &[7; 5000])], 2, &["noise.data", "expected perf.data"]);
    refused(&["trace", &file("short.perf", b"PERFILE2")], 2, &["short.perf"]);
    refused(&["trace", &file("noise", &[7; 5000])], 2, &["Perfetto", ".zst, .gz, .xz or .bz2"]);
    refused(&["trace", &file("rest.json", b"{")], 2, &["Perfetto"]);
    refused(&["compare", &file("w.toml", b"name = 'x'")], 2, &["w.toml", "line"]);
    let machine =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines/omap3530.toml"));
    let bad = machine.unwrap().replace("mhz = [600, 550", "mhz = [550, 600");
    refused(
        &["compare", "burst", "--machine", &file("m.toml", bad.as_bytes())],
        2,
        &["m.toml", "fastest first"],
    );
    refused(&["compare", "burst", "-p", &file("p.toml", b"spee = 1")], 2, &["p.toml", "spee"]);
    let missing = folder.path().join("no/such/folder/r.html").display().to_string();
    refused(&["compare", "burst", "--report", &missing], 2, &["--report", "r.html"]);
    refused(&["record", "-o", &file("r.perf", b"")], 2, &["--duration"]);
}

#[test]
fn a_truncated_recording_is_used_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/build.perf.zst");
    let bytes = zstd::decode_all(std::fs::File::open(whole).unwrap()).unwrap();
    let path = folder.path().join("half.perf");
    // The features at the end are gone, and with them the tracepoints' formats: nothing can be read.
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let out = wattwise(&["import", &path.display().to_string()]);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
    // ftrace text cut in the middle of a line: the rest is used, and a warning says so.
    let trace = "# tracer: nop\n\
        a-1 [000] d..2. 1.000000: sched_switch: prev_comm=swapper prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=1 next_prio=120\n\
        a-1 [000] d..2. 1.100000: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=swapper next_pid=0 next_prio=120\n\
        a-1 [000] d..2. 1.2000";
    let path = folder.path().join("cut.txt");
    std::fs::write(&path, trace).unwrap();
    let out = wattwise(&["import", &path.display().to_string()]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(text(&out.stdout).contains("warning"), "{}", text(&out.stdout));
}

#[test]
fn a_recordings_machine_and_its_work_are_known_or_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.txt");
    let trace = "# tracer: nop\n\
        a-1 [000] d..2. 1.000000: sched_switch: prev_comm=swapper prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=alpha next_pid=1 next_prio=120\n\
        a-1 [000] d..2. 1.100000: sched_switch: prev_comm=alpha prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=swapper next_pid=0 next_prio=120\n";
    std::fs::write(&path, trace).unwrap();
    let path = path.display().to_string();
    let khz = ["--recorded-khz", "2000000"];
    refused(&["compare", &path], 2, &["text.txt", "--recorded-khz"]);
    refused(
        &[&["compare", &path][..], &khz].concat(),
        2,
        &["text.txt", "-m", "nearest in number of CPUs", "(1)"],
    );
    refused(&["trace", &path, "--foreground", "alfa"], 2, &["--foreground alfa", "'alpha'"]);
    refused(&["trace", &path, "--recorded-khz", "3"], 2, &["--recorded-khz", "1000"]);
    let out = wattwise(&["trace", &path, "--foreground", "alpha", "--recorded-khz", "2000000"]);
    let told = text(&out.stdout);
    assert!(
        told.contains("as named: alpha, 1 tasks; other programs had 0.0 %")
            && told.contains("2.000 GHz, as stated"),
        "{told}"
    );
    let out = wattwise(&["import", "build", "--json"]);
    let import: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(import["foreground"], "the command make");
    assert_eq!(import["greatest_stranger"].as_str().map(|s| s.is_empty()), Some(false));
}

#[test]
fn a_failed_command_is_not_ranked() {
    let compare = |more: &[&str]| {
        let mut args = vec!["compare", "-m", "recording-vm", "-p", "performance", "-p", "powersave"];
        args.extend(more);
        wattwise(&[&args[..], &["--", "false"]].concat())
    };
    let out = compare(&[]);
    if out.status.code() == Some(3) && std::env::var_os("CI").is_none() {
        println!("skipped: {}", text(&out.stderr));
        return;
    }
    let told = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{told}");
    assert!(
        out.stdout.is_empty() && told.contains("exit code 1") && told.contains("--even-if-failed"),
        "{told}"
    );
    let out = compare(&["--even-if-failed"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stdout).contains("powersave"), "{}", text(&out.stderr));
}

#[test]
fn results_are_the_same_bytes_twice_on_any_number_of_threads() {
    let run = |threads: &str| {
        let out = Command::new(env!("CARGO_BIN_EXE_wattwise"))
            .args(["compare", "tbench", "--machine", "alderlake-p-laptop", "--json"])
            .env("RAYON_NUM_THREADS", threads)
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(0));
        out.stdout
    };
    assert!(run("1") == run("2"));
}

#[test]
fn every_machine_and_every_workload_are_compared() {
    let names = |what: &str| -> Vec<String> {
        let out = wattwise(&[what, "--json"]);
        let list: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        list["entries"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap().to_owned()).collect()
    };
    // The long benchmark job is left to the benchmark.
    let workloads = names("workloads").into_iter();
    let mixes = ["laptop-day", "server-day"];
    let workloads: Vec<String> =
        workloads.filter(|w| w != "bursts-v1" && !mixes.contains(&w.as_str())).collect();
    // Each machine with every eighth workload, beginning at another one: `holds same` has all pairs.
    for (first, machine) in names("machines").into_iter().enumerate() {
        for workload in workloads.iter().skip(first % 8).step_by(8) {
            let policies = ["-p", "schedutil", "-p", "powersave", "--exact", "--json"];
            let out = wattwise(&[&["compare", workload, "--machine", &machine][..], &policies].concat());
            assert_eq!(out.status.code(), Some(0), "{workload} on {machine}: {}", text(&out.stderr));
            let c: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
            for r in c["results"].as_array().unwrap() {
                let number = |k: &str| r[k].as_f64().unwrap();
                assert!(number("energy_j") > 0.0 && number("elapsed_s") > 0.0, "{workload} on {machine}");
                assert!(number("window_energy_j") > number("above_idle_j"), "{workload} on {machine}");
            }
        }
    }
}

#[test]
fn studies_and_lists_print() {
    // What each must say: a policy with its essay and parameter, a figure with its source, a study's figure and basis.
    for (args, says) in [
        (&["policies"][..], &["schedutil", "menu", "consolidate", "sched_mc", "eas"][..]),
        (
            &["policies", "show", "powerd++"],
            &["target share", "Clamp to the cap", "critical       temperature"],
        ),
        (&["machines", "show", "omap3530"], &["study 003", "95 % range", "0.11 to 0.294", "device-tree"]),
        (&["machines", "show", "omap3530", "--file"], &["study 003", "confidence = ", "cortex-a8"]),
        (&["machines", "show", "gs101"], &["Google Tensor", "measured", "1.44 to 1.59"]),
        (&["machines", "compare", "xeon-4210", "omap3530"], &["kind 1.speeds.volts", "41.7 to 111", "apart"]),
        (
            &["machines", "check", "omap3530", "-w", "burst"],
            &[
                "Not in the file",
                "platform.migration_us",
                "Guesses",
                "0.11 to 0.294",
                "capacitance_nf decides by",
            ],
        ),
        (&["workloads", "show", "build"], &["make -j2", "4.86 s on 2 CPUs"]),
        (&["workloads"], &["mixes of these", "server-day"]),
        (&["workloads", "show", "laptop-day"], &["idle-desktop=4 browse-app=2"]),
        (
            &["reproduce", "openbsd"],
            &["powersaving: build", "1123.00 s", "fitted", "does not finish within the window"],
        ),
        (
            &["reproduce", "thomson", "--json"],
            &["\"basis\": \"predicted\"", "386.2", "run time, new algorithm (burst)"],
        ),
        (&["reproduce", "powerctl"], &["mwait C2, 366/3.7", "predicted", "is underrated"]),
        (&["reproduce", "coreidle"], &["saving against the default", "predicted"]),
        (&["reproduce", "bc10"], &["throughput at 500 MHz", "prints 297 figures", "falls above 500 MHz"]),
        (
            &[
                "bench",
                "locks",
                "--threads",
                "1,2",
                "--cs",
                "0,short",
                "--ncs",
                "exp:3",
                "--ms",
                "5",
                "--repeats",
                "2",
            ],
            &["parking_lot", "adaptive", "exp:3"],
        ),
        (
            &["bench", "locks", "--machine", "i7-4510u", "--cs", "short", "--ncs", "long", "--json"],
            &["wattwise-bench-locks-1", "\"modelled\"", "mcs:spin"],
        ),
    ] {
        let out = wattwise(args);
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}", text(&out.stderr));
        let told = text(&out.stdout);
        // Sentences break where the line ends.
        let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let all = line(&told);
        for part in says {
            assert!(all.contains(&line(part)), "{args:?} does not say '{part}':\n{told}");
        }
    }
}

/// Study 000 and the closed forms that its figures rest on.
#[test]
fn thomson_is_reproduced_in_what_the_model_should_know() {
    let out = wattwise(&["reproduce", "thomson", "--json"]);
    let studies: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let figure = |part: &str| {
        let all = studies["studies"][0]["results"].as_array().unwrap();
        all.iter().find(|f| f["what"].as_str().unwrap().contains(part)).unwrap()["modelled"].as_f64().unwrap()
    };
    assert!((figure("(performance)") - 229.2).abs() < 0.1);
    // Four busy ticks of 10 ms: 30 to 40 ms at 600 MHz, and the change to 1700 MHz.
    let slow = |ms: f64| ms * (1.0 - 600.0 / 1700.0);
    let burst = figure("(burst)");
    assert!(burst > 229.2 + slow(30.0) && burst < 229.2 + slow(40.0) + 2.0, "{burst}");
    assert!(figure("hiadaptive (published: over 20 s)") > 20.0);
}

/// Every way in which a table can be wrong ends in one line that names the file, the row and what was expected.
#[test]
fn tables_that_cannot_be_scored_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let (soc, server) = (
        "soc,run,first_cpu_of_cluster,khz,coremarks_per_s,power_mw,idle_baseline_mw\n",
        "cpu,chips,cores,threads,nominal_mhz,mem_gb,year,w100,w90,w80,w70,w60,w50,w40,w30,w20,w10,w_idle\n",
    );
    let watts = "9,9,9,9,9,9,9,9,9,9,9";
    for (data_set, text, words) in [
        ("freqbench", String::new(), ["row 1: no column soc, run", "expected soc,run"]),
        ("freqbench", soc.to_owned(), ["no rows", "expected some"]),
        ("freqbench", soc.replace("khz,", ""), ["row 1: no column khz", "expected soc,run"]),
        ("freqbench", format!("{soc}a,m,0,fast,1,1,\n"), ["row 2: khz 'fast'", "kHz"]),
        ("freqbench", format!("{soc}a,m,0,1000,NaN,1,\n"), ["row 2: coremarks_per_s 'NaN'", "CoreMarks/s"]),
        ("freqbench", format!("{soc}a,m,0,1000,1,-1,\n"), ["row 2: power_mw '-1'", "mW"]),
        ("freqbench", format!("{soc}a,m,0,1000,1\n"), ["row 2: 5 cells", "expected 7"]),
        ("freqbench", format!("{soc}a,m,0,1000,1,1,\n"), ["no cluster has power", "expected some"]),
        (
            "specpower",
            format!("{server}Xeon,2,8,16,2000,16,2012,{watts},7\n"),
            ["row 2: 19 cells", "expected 18"],
        ),
        (
            "specpower",
            format!("{server}Xeon,-2,8,16,2000,16,2012,{watts}\n"),
            ["row 2: chips '-2'", "packages"],
        ),
        (
            "specpower",
            format!("{server}Xeon,2,8,16,2000,16,12,{watts}\n"),
            ["row 2: year '12'", "1990 to 2100"],
        ),
        (
            "specpower",
            format!("{server}Xeon,,8,16,2000,16,2012,{watts}\n"),
            ["no row has both", "expected some"],
        ),
    ] {
        let path = file("table.csv", text.as_bytes());
        refused(&["machines", "score", data_set, &path], 2, &["table.csv: ", words[0], words[1]]);
    }
    for (name, bytes, word) in [
        ("bytes.csv", &b"\xff\xfe\x00"[..], "byte 0 is no text"),
        ("escape.csv", b"soc\x1b[2J,\x07\n", "no column"),
    ] {
        refused(&["machines", "score", "specpower", &file(name, bytes)], 2, &[name, word]);
    }
    let huge = folder.path().join("huge.csv");
    std::fs::File::create(&huge).unwrap().set_len(65 << 20).unwrap();
    refused(&["machines", "score", "freqbench", huge.to_str().unwrap()], 2, &["huge.csv", "at most 64 MiB"]);
    let gone = folder.path().join("gone.csv");
    refused(
        &["machines", "score", "freqbench", gone.to_str().unwrap()],
        2,
        &["gone.csv", "expected a table"],
    );
    refused(&["machines", "score", "freqbench", folder.path().to_str().unwrap()], 2, &["expected a table"]);
    refused(&["machines", "show", "gs10"], 2, &["'gs101'"]);
    refused(&["machines", "check", "omap3531"], 2, &["'omap3530'"]);
}

/// A table with what would write to a terminal in its cells is scored, and that is shown and not acted on.
#[test]
fn a_tables_text_cannot_reach_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let head = "soc,run,first_cpu_of_cluster,khz,coremarks_per_s,power_mw,idle_baseline_mw\n";
    let row = |khz: u32| format!("\"a\x1b[31m\nb\",m,0,{khz},{khz},{khz},\n");
    std::fs::write(&path, format!("{head}{}{}{}", row(1000), row(2000), row(3000))).unwrap();
    let out = wattwise(&["machines", "score", "freqbench", path.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let told = text(&out.stdout);
    assert!(told.contains("1 row predicted") && told.contains("a\\u{1b}[31m b"), "{told}");
    assert!(!told.contains('\x1b'), "{told}");
}

/// Names of tasks and files are anybody's: none of them may drive the terminal that shows them.
#[test]
fn no_foreign_name_reaches_the_terminal_raw() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t\u{1b}]0;owned\u{7}\u{202e}.txt");
    let mut trace = String::from("# tracer: nop\n");
    for n in 0..40 {
        let (at, evil) = (n as f64 * 0.01, "\u{1b}[2J\u{9b}3m\u{202e}x");
        trace += &format!(
            " <idle>-0 [000] d..2. {:.6}: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm={evil} next_pid=7 next_prio=120\n",
            at + 1.0
        );
        trace += &format!(
            " {evil}-7 [000] d..2. {:.6}: sched_switch: prev_comm={evil} prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n",
            at + 1.004
        );
    }
    std::fs::write(&file, trace).unwrap();
    let file = file.to_str().unwrap();
    let other = folder.path().join("no\u{1b}[31m").display().to_string();
    for args in [
        &["trace", file][..],
        &["trace", file, "--json"],
        &["compare", file, "-m", "i7-4510u", "--exact"],
        &["compare", file, "-m", "i7-4510u", "--exact", "--json"],
        &["compare", file, "-m", "i7-4510u", "--exact", "--csv"],
        &["compare", &other],
        &["report", &other],
        &["info", "--root", &other],
    ] {
        let out =
            Command::new(env!("CARGO_BIN_EXE_wattwise")).args(args).env("FORCE_COLOR", "1").output().unwrap();
        let shown = text(&out.stdout) + &text(&out.stderr);
        let foreign = ["\u{1b}[2J", "\u{1b}]", "\u{1b}[31m", "\u{9b}", "\u{202e}", "\u{7}"];
        assert!(!foreign.iter().any(|f| shown.contains(f)), "{args:?}: {shown:?}");
        assert!(!shown.is_empty());
    }
}

/// A slip of the pen makes no run of years.
#[test]
fn a_replay_over_its_budget_ends_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("long.toml");
    let work = "name = \"long\"\nsummary = \"too long\"\n\
                [[task]]\nname = \"a\"\nrounds = 9000000\nsteps = [{ run_us = 1000 }, { sleep_us = 1000 }]\n";
    std::fs::write(&file, work).unwrap();
    let file = file.to_str().unwrap();
    let common = ["compare", file, "-m", "i7-4510u", "-p", "powersave", "-p", "performance", "--budget"];
    for (budget, words) in
        [("events=1e6", "1000000 simulated events"), ("simulated=100", "100 simulated seconds")]
    {
        let args: Vec<&str> = common.into_iter().chain([budget]).collect();
        refused(&args, 1, &[words, "--budget"]);
    }
    let args: Vec<&str> = common.into_iter().chain(["years=1"]).collect();
    refused(&args, 2, &["expected NAME=NUMBER"]);
    // So many steps are refused before anything runs.
    std::fs::write(file, work.replace("9000000", "4294967295")).unwrap();
    refused(&common[..common.len() - 1], 2, &["task 'a': more than 20000000 steps"]);
}

/// An hour of suspend within a recording: none of its joules is the policies', and it is said; charged if asked.
#[test]
fn a_suspend_costs_nothing_unless_it_is_charged() {
    let folder = tempfile::tempdir().unwrap();
    let recording = |name: &str, suspended_s: u64| {
        let mut text = String::from("# tracer: nop\n");
        let side = |at: f64, line: &str| format!("          <idle>-0       [000] d..2. {at:.6}: {line}\n");
        let switch = |prev: &str, pid: u32, next: &str, to: u32| {
            format!(
                "sched_switch: prev_comm={prev} prev_pid={pid} prev_prio=120 prev_state=S ==> next_comm={next} next_pid={to} next_prio=120"
            )
        };
        for round in 0..200u64 {
            if round == 100 && suspended_s > 0 {
                text += &side(2000.0, "suspend_resume: machine_suspend[3] begin");
                text += &side(2000.0 + suspended_s as f64, "suspend_resume: machine_suspend[3] end");
            }
            let away = if round >= 100 { suspended_s as f64 } else { 0.0 };
            let at = 1999.0 + round as f64 * 0.01 + away;
            text += &side(at, "sched_waking: comm=a pid=7 prio=120 target_cpu=000");
            text += &side(at + 0.00001, &switch("swapper/0", 0, "a", 7));
            text += &side(at + 0.003, &switch("a", 7, "swapper/0", 0)).replace("<idle>-0", "     a-7");
        }
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let joules = |file: &str, more: &[&str]| {
        let common = [
            "compare",
            file,
            "-m",
            "i7-4510u",
            "-p",
            "performance",
            "--exact",
            "--recorded-khz",
            "2GHz",
            "--json",
        ];
        let out = wattwise(&[&common[..], more].concat());
        assert!(out.status.success(), "{}", text(&out.stderr));
        let result: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let all =
            result["results"].as_array().unwrap().iter().map(|p| p["window_energy_j"].as_f64().unwrap());
        (all.collect::<Vec<_>>(), result["inputs"]["warnings"].to_string())
    };
    let (awake, slept) = (recording("awake.txt", 0), recording("slept.txt", 3600));
    let (without, _) = joules(&awake, &[]);
    let (with, said) = joules(&slept, &[]);
    assert!(said.contains("suspended once, 1:00:00 h"), "{said}");
    assert_eq!(with, without);
    let (charged, said) = joules(&slept, &["--suspend-watts", "0.5"]);
    assert!(said.contains("0.5 W, 1800 J"), "{said}");
    for (charged, without) in charged.iter().zip(&without) {
        assert!((charged - without - 1800.0).abs() < 1e-6, "{charged} {without}");
    }
    refused(&["compare", &slept, "--suspend-watts", "much"], 2, &["expected watts"]);
}

/// A model by a machine's own meters, and an answer on it.
#[test]
fn a_calibrated_machine_is_one_to_compare_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml").display().to_string();
    let out =
        wattwise(&["calibrate", "--root", "emulated:core-i5-2gen", "--budget", "60s", "-o", &file, "--json"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let result: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(result["schema"], "wattwise.calibration/1");
    let standing =
        |word: &str| result["figures"].as_array().unwrap().iter().filter(|f| f["standing"] == word).count();
    assert!(standing("fitted") >= 8 && standing("guess") >= 3, "{result:#}");
    let check = result["check_p95_percent"].as_f64().unwrap();
    assert!(check > 0.0 && check < 5.0, "{check}");
    assert!(!folder.path().join("mine.windows.jsonl").exists());
    let answer = wattwise(&["compare", "build", "-m", &file, "--json"]);
    assert!(answer.status.success(), "{}", text(&answer.stderr));
    for (args, code, words) in [
        (&["--budget", "1s"][..], 2, "--budget 1s: expected at least"),
        (&["-o", "/no/such/folder/m.toml"], 2, "expected a file that can be written"),
        (&["--root", "emulated:core-i6"], 2, "--root"),
    ] {
        let mut all = vec!["calibrate", "--root", "emulated:core-i5-2gen", "-o", &file];
        if args[0] == "--root" || args[0] == "-o" {
            all = vec!["calibrate", "--budget", "60s"];
            all.extend(if args[0] == "--root" { ["-o", &file] } else { ["--root", "emulated:core-i5-2gen"] });
        }
        all.extend(args);
        let out = wattwise(&all);
        assert_eq!(
            (out.status.code(), text(&out.stderr).contains(words)),
            (Some(code), true),
            "{}",
            text(&out.stderr)
        );
    }
}

/// A recording's first screen says whose work it is and which programs ran; the rest stands behind --all.
#[test]
fn a_recording_is_shown_on_one_screen() {
    let screen = text(&wattwise(&["trace", "build"]).stdout);
    assert!(screen.lines().count() <= 24 && screen.lines().all(|l| l.chars().count() <= 80), "{screen}");
    for fact in ["the command make, 92 tasks", "cc1 ", "(30 tasks)", "--all", "wattwise compare build"] {
        assert!(
            screen.split_whitespace().collect::<Vec<_>>().join(" ").contains(fact),
            "no '{fact}' in\n{screen}"
        );
    }
    let all = text(&wattwise(&["trace", "build", "--all"]).stdout);
    assert!(all.contains("top tasks") && all.contains("sched_switch"), "{all}");
    // The programs' times are those of their tasks: cc1's, nearly all of the time that the CPUs were busy, counted by CPU.
    let json: serde_json::Value =
        serde_json::from_slice(&wattwise(&["trace", "build", "--json"]).stdout).unwrap();
    let busy: f64 = json["cpus"].as_array().unwrap().iter().map(|c| c["busy_s"].as_f64().unwrap()).sum();
    let programs: f64 =
        json["programs"].as_array().unwrap().iter().map(|p| p["busy_s"].as_f64().unwrap()).sum();
    assert!(programs <= busy && programs > 0.99 * busy, "{programs} of {busy} s");
}
