//! The screen at both sizes, held against what it looked like: `WATTWISE_BLESS=1 cargo test -p wattwise --lib top` writes the
//! snapshots anew. Keys, and names that strangers chose.

use super::Sort;
use super::draw;
use super::screen::{Wanted, pressed};
use super::view::TopView;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::path::Path;
use wattwise_live::top::sample::{CpuSample, DomainSample, InForce, Sample, TaskSample};

/// A laptop of two kinds of core with figures that differ by CPU.
fn sample(cpus: u32) -> Sample {
    let cpu = |n: u32| {
        let busy = f64::from(n * 37 % 101) / 100.0;
        let idle = 1.0 - busy;
        CpuSample {
            cpu: n,
            kind: Some(if n < cpus / 2 { "P" } else { "E" }.to_owned()),
            khz: Some(400_000 + u64::from(n) * 100_000),
            busy: Some(busy),
            idle: vec![0.0, idle * 0.05, idle * 0.15, idle * 0.8],
            wakeups: Some(f64::from(n) * 11.0),
        }
    };
    let domain = |name: &str, watts| DomainSample { name: name.to_owned(), watts };
    let task =
        |pid, name: &str, wakeups| TaskSample { pid, name: name.to_owned(), wakeups, busy: wakeups / 5000.0 };
    Sample {
        machine: "13th Gen Intel(R) Core(TM) i7-1360P".to_owned(),
        at_s: 12.0,
        window_s: 2.0,
        policy: InForce {
            driver: Some("intel_pstate".to_owned()),
            governors: vec!["powersave".to_owned()],
            epps: vec!["balance_performance".to_owned()],
            limits_khz: Some((400_000, 5_000_000)),
            boost: Some(true),
            profile: Some("balanced".to_owned()),
            idle_governor: Some("menu".to_owned()),
            why: Some("balanced: on mains since 11:02".to_owned()),
        },
        watts: Some(14.26),
        energy: "measured by powercap".to_owned(),
        domains: vec![
            domain("psys", 14.26),
            domain("package-0", 9.81),
            domain("core-0", 6.2),
            domain("uncore-0", 0.4),
        ],
        celsius: Some(54.0),
        power_from: "battery".to_owned(),
        charge: Some(0.81),
        states: ["POLL", "C1E", "C6", "C10"].map(str::to_owned).to_vec(),
        cpus: (0..cpus).map(cpu).collect(),
        tasks: vec![task(812, "firefox", 412.0), task(1, "systemd", 3.0), task(99, "kworker/0:1", 55.0)],
        tasks_missing: None,
        own: Some(0.004),
    }
}

/// What a terminal of that size shows.
fn screen(view: &TopView, sample: &Sample, columns: u16, rows: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("in memory");
    terminal.draw(|frame| draw::page(frame.area(), frame.buffer_mut(), &view.shown(sample))).expect("drawn");
    let buffer = terminal.backend().buffer();
    let line = |y: u16| {
        (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned() + "\n"
    };
    (0..rows).map(line).collect()
}

fn held(name: &str, shown: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/machine/top/snapshots").join(name);
    if std::env::var_os("WATTWISE_BLESS").is_some() {
        std::fs::write(&path, shown).expect("snapshots can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == shown, "{name} looks otherwise:\n{shown}");
}

#[test]
fn both_sizes_look_as_they_did() {
    held("80x24.txt", &screen(&TopView::default(), &sample(16), 80, 24));
    held("200x60.txt", &screen(&TopView::default(), &sample(64), 200, 60));
    let still = Sample {
        watts: None,
        domains: Vec::new(),
        energy: "unavailable: powercap: energy_uj: permission denied; it is root's".to_owned(),
        tasks: Vec::new(),
        tasks_missing: Some("only this machine's own programs can be watched".to_owned()),
        own: None,
        policy: InForce::default(),
        ..sample(4)
    };
    let view = TopView { sort: Sort::Busy, paused: true, playing: true, ..TopView::default() };
    held("80x24-missing.txt", &screen(&view, &still, 80, 24));
}

#[test]
fn no_size_breaks_it() {
    for columns in [1, 20, 79, 80, 119, 120, 121, 200, 300] {
        for rows in [1, 5, 12, 24, 60, 100] {
            for cpus in [0, 1, 512] {
                screen(&TopView { scroll: 9999, ..TopView::default() }, &sample(cpus), columns, rows);
            }
        }
    }
}

#[test]
fn what_has_no_room_is_counted() {
    let shown = screen(&TopView::default(), &sample(64), 80, 24);
    assert!(shown.contains("more below"), "{shown}");
    let all = screen(&TopView { scroll: 64, ..TopView::default() }, &sample(64), 80, 24);
    assert!(!all.contains("more below") && all.contains("\n63 "), "{all}");
}

#[test]
fn keys_do_what_they_say() {
    let mut view = TopView::default();
    let press = |code, view: &mut TopView| pressed(KeyEvent::new(code, KeyModifiers::NONE), view, 16);
    assert_eq!(press(KeyCode::Char('s'), &mut view), Wanted::Nothing);
    assert_eq!(view.sort, Sort::Busy);
    press(KeyCode::Char('p'), &mut view);
    press(KeyCode::Down, &mut view);
    press(KeyCode::PageDown, &mut view);
    press(KeyCode::PageDown, &mut view);
    assert!(view.paused && view.scroll == 15, "{view:?}");
    press(KeyCode::Home, &mut view);
    assert_eq!(view.scroll, 0);
    assert_eq!(press(KeyCode::Char('r'), &mut view), Wanted::Record);
    assert_eq!(press(KeyCode::Char('q'), &mut view), Wanted::Quit);
    let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(pressed(ctrl_c, &mut view, 16), Wanted::Quit);
}

/// A program may call itself what it likes, and so may a capture's processor.
#[test]
fn no_name_reaches_the_terminal_as_it_is() {
    let mut hostile = sample(4);
    hostile.machine = "\x1b[2Jx\ny".to_owned();
    hostile.tasks[0].name = "a\x1b]0;t\x07\u{202e}b".to_owned();
    hostile.states[3] = "\x1b[1m".to_owned();
    hostile.policy.governors = vec!["p\x1b[31m".to_owned()];
    hostile.policy.why = Some("\r\nforged".to_owned());
    for (columns, rows) in [(80, 24), (200, 60)] {
        let shown = screen(&TopView::default(), &hostile, columns, rows);
        assert!(!shown.contains(['\x1b', '\x07', '\r', '\u{202e}']), "{shown:?}");
        assert_eq!(shown.lines().count(), usize::from(rows));
    }
    assert!(!draw::plain(&TopView::default().shown(&hostile), 80, 40).contains('\x1b'));
}

#[test]
fn order_is_what_was_asked_for() {
    let first = |sort| TopView { sort, ..TopView::default() }.shown(&sample(16)).sample.cpus[0].cpu;
    assert_eq!((first(Sort::Cpu), first(Sort::Speed), first(Sort::Wakeups)), (0, 15, 15));
    let busy: Vec<u32> = TopView { sort: Sort::Busy, ..TopView::default() }
        .shown(&sample(16))
        .sample
        .cpus
        .iter()
        .map(|c| c.cpu)
        .collect();
    assert_eq!(busy[0], 8, "{busy:?}");
}
