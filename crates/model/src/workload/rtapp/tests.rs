use super::*;
use crate::workload::TaskId;

fn work(text: &str) -> Result<Workload, String> {
    parse(text, "some/f.json").expect("has tasks").map_err(|e| e.to_string())
}

/// A task's steps and what its pattern has besides.
fn pattern(work: &Workload, task: usize) -> &Pattern {
    match &work.tasks[task].program {
        Program::Pattern(pattern) => pattern,
        Program::Recorded(_) => panic!("a pattern"),
    }
}

/// So many us at the reference clock.
fn run(us: u64) -> Step {
    Step::Run(Dist::Fixed(us * u64::from(DEFAULT_KHZ) / 1000))
}

fn sleep(us: u64) -> Step {
    Step::Sleep(Dist::Fixed(us * 1000))
}

/// What workgen and json-c let pass, in the manner of rt-app's own examples: comments, commas too many, one key several times, a
/// name left out, keys with numbers.
#[test]
fn a_file_in_the_manner_of_the_examples_is_read() {
    let text = r#"{
        /* A tick that lets a player work, "in turns" { */
        "tasks" : {
            "tick" : {
                "priority" : -19, "loop" : -1, "cpus" : [0], // bound, and "early"
                "phases" : {
                    "p1" : { "loop" : 1, "resume" : "player", "timer0" : { "ref" : "tick", "period" : 6000 } },
                    "p2" : { "loop" : 2, "timer" : { "ref" : "tick", "period" : 6000, "mode" : "relative" }, },
                }
            },
            "player" : {
                "policy" : "SCHED_RR", "priority" : 12,
                "suspend",
                "run" : 275, "lock" : "m", "run" : 4725, "unlock" : "m", "sleep1" : 10, "sleep2" : 0, "runtime3" : 1,
            },
            "late" : { "instance" : 2, "delay" : 500, "loop" : 7, "run0" : 10, "sleep" : 20 },
        },
        "resources" : {},
        "global" : {
            "duration" : 600, "calibration" : "CPU0", "default_policy" : "SCHED_BATCH", "pi_enabled" : false,
            "lock_pages" : true, "logdir" : "/*no comment*/", "log_basename" : "x // y \" z", "gnuplot" : false, "frag" : 1
        }
    }"#;
    let work = work(text).expect("sound");
    assert_eq!((work.name.as_str(), work.locks, work.span_ns), ("f.json", 1, 600_000_000_000));
    let names: Vec<_> = work.tasks.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["tick", "player", "late/0", "late/1"]);
    let period = Step::Period(6_000_000);
    assert_eq!(pattern(&work, 0).steps, [Step::Wake(TaskId(1)), period, period, period]);
    assert_eq!(pattern(&work, 0).until_ns, 600_000_000_000);
    let tick = &work.tasks[0];
    assert_eq!((tick.nice, tick.realtime, &tick.affinity), (-19, false, &Some(Affinity::Cpus(vec![0]))));
    let player = [Step::Block, run(275), Step::Lock(0), run(4725), Step::Unlock(0), sleep(10), run(1)];
    assert_eq!(pattern(&work, 1).steps, player);
    assert_eq!((work.tasks[1].nice, work.tasks[1].realtime, work.tasks[1].ends), (0, true, false));
    assert_eq!((pattern(&work, 1).rounds, pattern(&work, 1).until_ns), (u64::MAX, u64::MAX));
    let late = pattern(&work, 3);
    assert_eq!((late.rounds, late.start, work.tasks[3].ends), (7, Dist::Fixed(500_000), true));
    assert_eq!(late.steps, [run(10), sleep(20)]);
}

/// 2 of 16 ms: the first round takes 18 ms, as its timer is first used after its run; of the others 999 begin before 16 s.
#[test]
fn a_periodic_task_has_its_share_of_the_duration() {
    let text = r#"{"tasks": {"a": {"run": 2000, "timer": {"ref": "unique", "period": 16000}}}, "global": {"duration": 16}}"#;
    let work = work(text).expect("sound").replica(0).expect("finite");
    let (rounds, cycles) = (pattern(&work, 0).rounds, pattern(&work, 0).steps[0]);
    assert_eq!((rounds, cycles), (1000, Step::Run(Dist::Fixed(6_000_000))));
    // 1000 runs of 6 million cycles at 3 GHz are 2 of 16 s.
    assert_eq!(rounds * 6_000_000 * 8, 16 * 3_000_000_000);
    let slower = text.replace("16}}", "16, \"reference_khz\": 1000000}}");
    assert_eq!(pattern(&self::work(&slower).expect("sound"), 0).steps[0], Step::Run(Dist::Fixed(2_000_000)));
}

#[test]
fn phases_are_unrolled_and_end_with_the_duration() {
    let phases = |global: &str| {
        format!(
            r#"{{"tasks": {{"a": {{"loop": 2, "phases": {{
                "light": {{"loop": 3, "run": 1000, "sleep": 99000}}, "heavy": {{"loop": 2, "run": 500000}}}}}}}}, "global": {{{global}}}}}"#
        )
    };
    let whole = work(&phases("")).expect("sound");
    let light = [run(1000), sleep(99_000)];
    let heavy = run(500_000);
    assert_eq!(pattern(&whole, 0).steps, [&light[..], &light, &light, &[heavy, heavy]].concat());
    assert_eq!((pattern(&whole, 0).rounds, whole.tasks[0].ends), (2, true));
    // Of a round of 1.3 s, what begins within 1 s: all but nothing. Of one that goes on to 3 s with the same phases, the half.
    let cut = work(&phases("\"duration\": 1").replace("500000", "900000")).expect("sound");
    assert_eq!(pattern(&cut, 0).steps, [&light[..], &light, &light, &[run(900_000)]].concat());
    assert_eq!(pattern(&cut, 0).rounds, 1);
    // What would begin at the end does not.
    let at_the_end = work(&phases("\"duration\": 1").replace("500000", "700000")).expect("sound");
    assert_eq!(pattern(&at_the_end, 0).steps, [&light[..], &light, &light, &[run(700_000)]].concat());
    // One phase needs no unrolling, however often it is gone through.
    let one = r#"{"tasks": {"a": {"loop": 1, "phases": {"p": {"loop": 5000000, "run": 1}}}}}"#;
    let one = work(one).expect("sound");
    assert_eq!((pattern(&one, 0).rounds, pattern(&one, 0).steps.len()), (5_000_000, 1));
}

#[test]
fn names_wake_all_others_that_wait_on_them() {
    let text = r#"{"tasks": {
        "a": {"loop": 3, "run": 1, "resume": "x", "lock": "m", "sync": {"ref": "q", "mutex": "m"}, "unlock": "m"},
        "b": {"instance": 2, "suspend": "x", "run": 1},
        "c": {"lock": "m", "wait": {"ref": "q", "mutex": "m"}, "unlock": "m", "run": 1, "lock": "m", "signal": "q", "unlock": "m"}
    }}"#;
    let work = work(text).expect("sound");
    let wake = |task| Step::Wake(TaskId(task));
    let (lock, unlock) = (Step::Lock(0), Step::Unlock(0));
    let a = [run(1), wake(1), wake(2), lock, wake(3), unlock, Step::Block, lock, unlock];
    assert_eq!(pattern(&work, 0).steps, a);
    let c = [lock, unlock, Step::Block, lock, unlock, run(1), lock, wake(0), unlock];
    assert_eq!(pattern(&work, 3).steps, c);
}

/// In the manner of rt-app's `mp3`: one task on two names. As rt-app has it, a wake-up that nobody waits for is lost:
/// the player is at work when the first tick comes.
#[test]
fn a_task_may_wait_on_several_names_and_lost_wake_ups_are_lost() {
    let text = r#"{"tasks": {
        "tick": {"loop": 4, "resume": "out", "timer": {"ref": "t", "period": 6000}},
        "out": {"run": 4000, "resume": "decoder", "run": 1000, "suspend": "out"},
        "decoder": {"suspend": "decoder", "run": 100, "lock": "m", "signal": "q", "wait": {"ref": "q", "mutex": "m"}, "unlock": "m", "run": 10},
        "codec": {"lock": "m", "wait": {"ref": "q", "mutex": "m"}, "unlock": "m", "run": 300, "lock": "m", "signal": "q", "unlock": "m"}
    }, "global": {"duration": 1}}"#;
    let work = work(text).expect("sound");
    let (wake, period) = (|task| Step::Wake(TaskId(task)), Step::Period(6_000_000));
    let (lock, unlock) = (Step::Lock(0), Step::Unlock(0));
    // At 0 ms nobody waits on `out` yet; at 6, 12 and 18 ms it does.
    assert_eq!(pattern(&work, 0).steps, [period, wake(1), period, wake(1), period, wake(1), period]);
    let out = [run(4000), wake(2), run(1000), Step::Block];
    let four = [&out[..], &out, &out, &[run(4000), wake(2), run(1000)]].concat();
    assert_eq!((&pattern(&work, 1).steps, pattern(&work, 1).rounds), (&four, 1));
    let decoder = [Step::Block, run(100), lock, wake(3), unlock, Step::Block, lock, unlock, run(10)];
    assert_eq!(pattern(&work, 2).steps, decoder.repeat(4));
    let codec = [lock, unlock, Step::Block, lock, unlock, run(300), lock, wake(2), unlock];
    // It waits once more when the others are done.
    assert_eq!(pattern(&work, 3).steps, [&codec.repeat(4)[..], &[lock, unlock]].concat());
    assert_eq!(work.span_ns, 1_000_000_000);
}

/// As in rt-app's tutorial: whoever comes first waits, and the last one lets all go on.
#[test]
fn tasks_meet_at_barriers() {
    let text = r#"{"tasks": {
        "a": {"loop": 2, "run": 1000, "sleep": 2000, "barrier1": "FIRST", "run": 2000, "barrier2": "SECOND"},
        "b": {"loop": 2, "run": 2000, "barrier1": "FIRST", "run": 1000, "sleep": 2000, "barrier2": "SECOND"}
    }}"#;
    let work = work(text).expect("sound");
    let wake = |task| Step::Wake(TaskId(task));
    let a = [run(1000), sleep(2000), wake(1), run(2000), Step::Block];
    let b = [run(2000), Step::Block, run(1000), sleep(2000), wake(0)];
    assert_eq!(pattern(&work, 0).steps, [a, a].concat());
    assert_eq!(pattern(&work, 1).steps, [b, b].concat());
}

/// A barrier and a name on which a task waits are two things, whatever they are called; and a task may have no copies at all.
#[test]
fn barriers_and_names_are_apart() {
    let text = r#"{"tasks": {
        "a": {"loop": 1, "run": 1000, "resume": "x", "sleep": 1000, "barrier": "x"},
        "b": {"loop": 1, "barrier": "x", "run": 1},
        "c": {"loop": 1, "suspend": "x", "run": 2},
        "none": {"instance": 0, "lock": "m", "sync": {"ref": "q", "mutex": "m"}, "unlock": "m", "run": 1}
    }}"#;
    let work = work(text).expect("sound");
    let wake = |task| Step::Wake(TaskId(task));
    assert_eq!(pattern(&work, 0).steps, [run(1000), wake(2), sleep(1000), wake(1)]);
    assert_eq!(pattern(&work, 1).steps, [Step::Block, run(1)]);
    assert_eq!(pattern(&work, 2).steps, [Step::Block, run(2)]);
    assert_eq!(work.tasks.len(), 3);
}

/// 10 ms in turns, for 1 s: a hundred times, fifty each.
#[test]
fn two_that_wake_each_other_for_ever_end_with_the_duration() {
    let text = r#"{"tasks": {
        "a": {"run": 10000, "resume": "b", "suspend": "a"},
        "b": {"suspend": "b", "run": 10000, "resume": "a"}
    }, "global": {"duration": 1}}"#;
    let work = work(text).expect("sound");
    let runs = |task| pattern(&work, task).steps.iter().filter(|s| **s == run(10_000)).count();
    assert_eq!((runs(0), runs(1), work.span_ns), (50, 50, 1_000_000_000));
    // Of several the one that has waited longest.
    let pool = r#"{"tasks": {
        "boss": {"loop": 5, "sleep": 1000, "lock": "m", "signal": "work", "unlock": "m"},
        "hand": {"instance": 2, "lock": "m", "wait": {"ref": "work", "mutex": "m"}, "unlock": "m", "run": 1500}
    }, "global": {"duration": 1}}"#;
    let work = self::work(pool).expect("sound");
    let names: Vec<_> = work.tasks.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["boss", "hand/0", "hand/1"]);
    let woken: Vec<u32> = pattern(&work, 0)
        .steps
        .iter()
        .filter_map(|s| if let Step::Wake(TaskId(t)) = s { Some(*t) } else { None })
        .collect();
    assert_eq!(woken, [1, 2, 1, 2, 1]);
}

#[test]
fn what_is_no_rt_app_file_is_left_to_others() {
    for text in [
        "",
        "{",
        "{}",
        "[]",
        r#"{"tasks": []}"#,
        r#"{"a": {"tasks": {}}}"#,
        r#"["tasks", {}]"#,
        "\"tasks\": {}",
        "/*",
        "\"",
        "}]{",
    ] {
        assert!(parse(text, "f.json").is_none(), "{text}");
    }
}

#[test]
fn mistakes_name_the_task_and_the_key() {
    let mut cases = vec![
        (r#"{"tasks": {}}"#.to_owned(), "0 tasks: expected 1 to"),
        (r#"{"tasks": {"a": 1}}"#.to_owned(), "task 'a': expected an object"),
        ("{\n\"tasks\": {\n\"a\": }}".to_owned(), "line 3"),
        (r#"{"tasks": {"a": {"loop": 1, "run": 1}}, "global": {"duration": -2}}"#.to_owned(), "global: 'duration'"),
        (r#"{"tasks": {"a": {"loop": 1, "run": 1}, "a": {"loop": 1, "run": 1}}}"#.to_owned(), "task 'a': is there twice"),
        (
            r#"{"tasks": {"a": {"run": 1, "resume": "b", "suspend": "a"}, "b": {"suspend", "run": 1, "resume": "a"}}}"#.to_owned(),
            "task 'a': wakes and is woken for ever",
        ),
        (
            r#"{"tasks": {"a": {"loop": 1, "timer": {"ref": "t", "period": 1}}, "b": {"loop": 1, "timer": {"ref": "t", "period": 1}}}}"#.to_owned(),
            "task 'b': 'timer': ref 't' is shared",
        ),
        // Nothing is gone through a thousand million times, not even what takes no step.
        (
            format!(r#"{{"tasks": {{"a": {{"instance": 100000, "loop": 1, {} "run": 1}}}}}}"#, r#""run": 0, "#.repeat(10_000)),
            "more than 2000000 steps",
        ),
        (
            format!(r#"{{"tasks": {{"a": {{"run": 1, "loop": 1, {} "run": 1}}}}}}"#, (0..70_000).map(|i| format!(r#""lock": "{i}", "#)).collect::<String>()),
            "70000 mutexes: expected at most 65536",
        ),
        ("[".repeat(100_000) + "{\"tasks\": {", ""),
        ("{\"tasks\": {\"a\": ".to_owned() + &"[".repeat(100_000), "is nested too deeply"),
    ];
    for (body, part) in [
        (r#""run": 1"#, "never ends; expected a loop of the task or a duration"),
        (
            r#""run": 1, "yield": "x""#,
            "'yield': not among what wattwise can replay; expected lock, unlock, wait",
        ),
        (r#""run": 1, "util_min": 3"#, "'util_min': not among"),
        (r#""run": 1, "mem1": 3"#, "'mem1': not among"),
        (r#""run": 1, "loop": 0"#, "'loop': expected 1 or more"),
        (r#""run": -1"#, "'run': expected a whole number of us"),
        (r#""run": 1.5"#, "'run': expected a whole number of us"),
        (r#""loop": 1, "sleep": 0, "run": 0"#, "takes no time"),
        (r#""loop": 1"#, "takes no time"),
        (r#""loop": 1, "run": 1, "resume": "b""#, "'resume': nobody waits on 'b'"),
        (
            r#""run": 1, "barrier": "x""#,
            "task 'a': goes on for ever; expected a duration in global, or a loop",
        ),
        (r#""loop": 1, "run": 1, "wait": {"ref": "b"}"#, "'wait': expected { \"ref\""),
        (r#""loop": 1, "run": 1, "wait": {"ref": "b", "mutex": "m"}"#, "expected lock before unlock, wait"),
        (r#""loop": 1, "run": 1, "lock": "m""#, "keeps a mutex"),
        (r#""loop": 1, "run": 1, "lock": "m", "lock": "m""#, "takes a mutex twice"),
        (r#""loop": 1, "run": 1, "policy": "SCHED_DEADLINE""#, "'policy': expected SCHED_OTHER"),
        (r#""loop": 1, "run": 1, "priority": 20"#, "'priority': expected a whole number from -20 to 19"),
        (r#""loop": 1, "run": 1, "cpus": [70000]"#, "'cpus': expected CPUs"),
        (r#""loop": 1, "run": 1, "cpus": []"#, "'cpus': expected a list"),
        (r#""loop": 1, "instance": 1000000, "run": 1"#, "'instance': expected"),
        (r#""loop": 1, "instance": 0, "run": 1"#, "0 tasks"),
        (r#""loop": 1, "timer": {"ref": "unique", "period": 0}"#, "'timer': 'period': expected"),
        (
            r#""timer": {"ref": "uniqueA", "period": 1}, "timer": {"ref": "uniqueB", "period": 1}"#,
            "expected one timer a task",
        ),
        (r#""instance": 2, "timer": {"ref": "t", "period": 1}"#, "expected one that begins with \"unique\""),
        (r#""run": 1, "phases": {}"#, "'run': not among what wattwise reads beside 'phases'"),
        (
            r#""phases": {"p": {"run": 1, "cpus": [0]}, "q": {"run": 1}}"#,
            "phase 'q': policy, priority and cpus",
        ),
        (
            r#""phases": {"p": {"run": 1}, "q": {"run": 1, "loop": -1}}"#,
            "phase 'q': 'loop': expected 1 or more",
        ),
        (
            r#""phases": {"p": {"loop": 9223372036854775807, "run": 1}, "q": {"run": 1}}"#,
            "more than 2000000 steps",
        ),
        (
            r#""instance": 100000, "phases": {"p": {"loop": 21, "run": 1}, "q": {"run": 1}}, "loop": 1"#,
            "more than 2000000 steps",
        ),
    ] {
        cases.push((format!("{{\"tasks\": {{\"a\": {{{body}}}}}}}"), part));
    }
    for (text, part) in cases {
        let Some(read) = parse(&text, "f.json") else { continue };
        let message = read.expect_err(part).to_string();
        assert!(message.starts_with("f.json: ") && message.contains(part), "{part}: {message}");
        assert!(!message.contains('\n') && message.len() < 500, "{message}");
    }
}
