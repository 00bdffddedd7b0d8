//! Properties that every policy of the tables must have, whatever it is fed: it neither panics nor
//! allocates, and asks only for what the machine offers.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use wattwise_policy::limits::{Bound, Limits};
use wattwise_policy::{
    Autonomy, CpuSample, DomainInfo, DomainSample, IdleOutcome, IdleQuery, IdleState, Intent, Khz, Level, MS,
    Observation, Param, ParamKind, Platform, PowerSource, SampleScope, Settings, SpecError, System, cores,
    idle, speed,
};

/// Counts the allocations of each thread, so that tests which run side by side do not see each other.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // A thread that is going away has no counter left, and nothing to count for.
    let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
}

// SAFETY: every call goes on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are handed on.
        unsafe { std::alloc::System.alloc(layout) }
    }
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are handed on.
        unsafe { std::alloc::System.dealloc(p, layout) }
    }
    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are handed on.
        unsafe { std::alloc::System.realloc(p, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations() -> usize {
    ALLOCATIONS.with(Cell::get)
}

/// Marsaglia's xorshift64*: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    /// A time as it occurs, or one that should not.
    fn time(&mut self) -> u64 {
        match self.below(12) {
            0..4 => 0,
            4 => u64::MAX,
            5 => self.next(),
            6 => self.below(10),
            _ => self.below(400 * MS),
        }
    }
    fn sample(&mut self) -> CpuSample {
        CpuSample {
            busy_ns: self.time(),
            idle_ns: self.time(),
            iowait_ns: self.time(),
            runnable: [0, 0, 1, 2, u32::MAX][self.below(5) as usize],
            io_wake: self.below(4) == 0,
            tickless: self.below(2) == 0,
            task_util: [0, 5, 512, 1024, u32::MAX][self.below(5) as usize],
            moved_util: [0, 300, -300, i32::MIN, i32::MAX][self.below(5) as usize],
        }
    }
    fn khz(&mut self, domain: &DomainInfo) -> Khz {
        match self.below(8) {
            0 => Khz(0),
            1 => Khz(self.next() as u32),
            _ => domain.levels[self.below(domain.levels.len() as u64) as usize].khz,
        }
    }
    fn source(&mut self) -> PowerSource {
        [PowerSource::Unknown, PowerSource::Mains, PowerSource::Battery][self.below(3) as usize]
    }
    fn temperature(&mut self) -> Option<i32> {
        [None, Some(i32::MIN), Some(i32::MAX), Some(0), Some(self.below(120_000) as i32)]
            [self.below(5) as usize]
    }
}

fn domain(cpus: std::ops::Range<u16>, khz: &[u32], power: bool) -> DomainInfo {
    DomainInfo {
        cpus: cpus.collect(),
        levels: khz.iter().map(|&k| Level { khz: Khz(k), busy_uw: power.then_some(k / 2) }).collect(),
        transition_ns: 10_000,
        base: Khz(khz[khz.len() / 2]),
        boost_with: None,
        load_full: Khz(khz[0]),
        capacity: 1024,
    }
}

/// A laptop, a machine of many unlike domains, and what no one should have.
fn platforms() -> Vec<Platform> {
    let platform = |domains: Vec<DomainInfo>, tick_ns| Platform {
        cpus: domains.iter().map(|d| d.cpus.len() as u16).sum(),
        domains,
        tick_ns,
        load_invariant: true,
        boost: true,
        deepest_idle_uw: Some(u32::MAX),
        awake_uw: Some(u32::MAX),
        autonomy: Autonomy::default(),
    };
    let mut odd = domain(0..1, &[u32::MAX, 3, 1], true);
    (odd.capacity, odd.transition_ns) = (0, u64::MAX);
    vec![
        platform(vec![domain(0..4, &[3_200_000, 2_400_000, 1_600_000, 800_000], false)], 4 * MS),
        platform(
            vec![
                domain(0..1, &[5_000_000, 4_999_999, 1_000_000], true),
                domain(1..3, &[2_000_000], true),
                domain(3..8, &[3_000_000, 2_900_000, 400_000], false),
            ],
            MS,
        ),
        platform(vec![odd], 1),
    ]
}

/// Spellings that cover every parameter's ends and every word of a choice, one at a time.
fn spellings(params: &'static [Param]) -> Vec<Settings> {
    let mut all = vec![Settings::defaults(params)];
    for p in params {
        let values: Vec<String> = match p.kind {
            ParamKind::Number { min, max, .. } => vec![min.to_string(), max.to_string()],
            ParamKind::Choice(words) => words.iter().map(|w| w.to_string()).collect(),
            ParamKind::Scale { min, max, words, .. } => {
                let words = words.iter().map(|(w, _)| w.to_string());
                words.chain([min.to_string(), max.to_string()]).collect()
            }
        };
        for v in values {
            all.push(Settings::parse(params, &format!("{}={v}", p.name)).expect("its own range"));
        }
    }
    all
}

fn is_offered(domain: &DomainInfo, khz: Khz) -> bool {
    khz.0 == 0 || domain.levels.iter().any(|l| l.khz == khz)
}

#[test]
fn speed_policies_survive_anything_without_allocating() {
    let mut random = Random(42);
    for platform in platforms() {
        let mut cpus = vec![CpuSample::default(); usize::from(platform.cpus)];
        let mut domains = vec![DomainSample::default(); platform.domains.len()];
        for policy in speed::ALL {
            let tight = Limits {
                min: Some(Bound::Khz(Khz(1_000_000))),
                max: Some(Bound::Share(60_000)),
                no_boost: true,
                power_uw: None,
            };
            let free = spellings(policy.params).into_iter().map(|s| (s, Limits::default()));
            for (settings, limits) in free.chain([(Settings::defaults(policy.params), tight)]) {
                let mut p = limits.build(policy, &platform, &settings);
                let mut intent = Intent::neutral(platform.domains.len());
                let mut now_ns: u64 = 0;
                let mut polls = 0;
                let before = allocations();
                for step in 0..600 {
                    intent.next_ns = None;
                    let scope = match random.below(4) {
                        _ if step == 0 => SampleScope::All,
                        0 => SampleScope::All,
                        1 => SampleScope::Domain(random.below(platform.domains.len() as u64 + 1) as u16),
                        _ => SampleScope::Cpu(random.below(u64::from(platform.cpus) + 1) as u16),
                    };
                    if step > 0 {
                        cpus.iter_mut().for_each(|c| *c = random.sample());
                    }
                    for (sample, d) in domains.iter_mut().zip(&platform.domains) {
                        *sample = DomainSample { khz: random.khz(d), min: random.khz(d), max: random.khz(d) };
                    }
                    let obs = Observation {
                        now_ns,
                        asks: random.below(3) > 0,
                        scope,
                        cpus: &cpus,
                        domains: &domains,
                        source: random.source(),
                        temperature_mc: random.temperature(),
                    };
                    if step == 0 {
                        p.start(&obs, &mut intent)
                    } else {
                        p.observe(&obs, &mut intent)
                    }
                    let ok = intent.domains.iter().zip(&platform.domains).all(|(i, d)| {
                        is_offered(d, i.desired) && is_offered(d, i.min) && is_offered(d, i.max)
                    });
                    assert!(ok, "{}: {:?} at {scope:?}", policy.name, intent.domains);
                    // A speed outside is no harm: the actuator keeps inside these.
                    let inside = intent
                        .domains
                        .iter()
                        .zip(&platform.domains)
                        .all(|(i, d)| limits.is_none() || (i.min, i.max) == limits.range(d));
                    assert!(inside, "{}: {:?} within {limits:?}", policy.name, intent.domains);
                    now_ns = now_ns.saturating_add(random.time());
                    polls += 1;
                }
                assert_eq!(allocations() - before, 0, "{} allocates ({polls} observations)", policy.name);
            }
        }
    }
}

#[test]
fn idle_policies_survive_anything_without_allocating() {
    let mut random = Random(7);
    let tables: [&[(u64, u64)]; 5] = [
        &[(1, 1)],
        &[(0, 0)],
        &[(0, 0), (2, 2), (10, 20), (130, 600)],
        &[(1, 1), (1, u64::MAX), (u64::MAX, u64::MAX)],
        &[(0, 0); 12],
    ];
    for table in tables {
        let mut states: Vec<IdleState> = table
            .iter()
            .enumerate()
            .map(|(i, &(exit, target))| IdleState {
                exit_ns: exit.saturating_mul(1000),
                target_ns: target.saturating_mul(1000),
                enabled: true,
                polls: (i, exit, target) == (0, 0, 0),
            })
            .collect();
        for policy in idle::ALL {
            for settings in spellings(policy.params) {
                let mut p = (policy.build)(&states, 4 * MS, &settings);
                let before = allocations();
                for _ in 0..5_000 {
                    // State 0 is always allowed.
                    states.iter_mut().skip(1).for_each(|s| s.enabled = random.below(5) > 0);
                    let query = IdleQuery {
                        now_ns: random.time(),
                        next_timer_ns: random.time(),
                        next_tick_ns: random.time(),
                        tick_stopped: random.below(3) == 0,
                        latency_limit_ns: if random.below(3) == 0 { random.time() } else { u64::MAX },
                        iowaiters: random.below(3) as u32,
                        ran_at_tick: random.below(3) as u32,
                        states: &states,
                    };
                    let choice = p.select(&query);
                    let state = usize::from(choice.state);
                    assert!(state < states.len(), "{}", policy.name);
                    assert!(
                        state == 0
                            || (states[state].enabled && states[state].exit_ns <= query.latency_limit_ns),
                        "{} chose a forbidden state",
                        policy.name
                    );
                    assert!(choice.stop_tick || !query.tick_stopped, "{} restarts the tick", policy.name);
                    let outcome = IdleOutcome {
                        state: if random.below(20) == 0 { 255 } else { choice.state },
                        measured_ns: random.time(),
                        by_timer: random.below(3) == 0,
                        by_tick: random.below(5) == 0,
                        poll_ended: random.below(4) == 0,
                    };
                    p.reflect(&outcome, &states);
                }
                assert_eq!(allocations() - before, 0, "{} allocates", policy.name);
            }
        }
    }
}

#[test]
fn the_counter_counts() {
    let before = allocations();
    drop(std::hint::black_box(Box::new(1)));
    assert!(allocations() > before);
}

/// A rule of someone else's names its file with a version, or a paper with its year; the essay says the
/// same and what was left out.
fn says_whose_rule_it_is(name: &str, follows: &str, essay: &str) {
    assert!(!follows.is_empty() && !follows.ends_with('.'), "{name}: whose rule is it?");
    assert!(essay.contains("follow"), "{name}: the essay does not say whose rule it follows");
    if follows.starts_with("this project") {
        assert!(essay.contains("nobody's source"), "{name}");
        return;
    }
    assert!(essay.contains("Left out"), "{name}: the essay does not say what was left out");
    let dated = follows.contains(|c: char| c.is_ascii_digit()) || follows.contains("not noted");
    assert!(dated || follows.contains("study"), "{name}: '{follows}' has no version");
    if let Some(version) = follows.strip_prefix("Linux ").and_then(|f| f.split(',').next()) {
        assert!(essay.contains(&format!("Linux {version}")), "{name}: the essay names another version");
    }
}

/// What help and documents are made of.
#[test]
fn every_item_documents_itself() {
    let items = speed::ALL
        .iter()
        .map(|p| (p.name, p.summary, p.follows, p.source, p.params))
        .chain(idle::ALL.iter().map(|p| (p.name, p.summary, p.follows, p.source, p.params)))
        .chain(cores::ALL.iter().map(|p| (p.name, p.summary, p.follows, p.source, p.params)));
    for (name, summary, follows, source, params) in items {
        assert!(!summary.is_empty() && !summary.ends_with('.'), "{name}");
        let essay: Vec<_> = wattwise_policy::essay(source).collect();
        assert!(essay.len() >= 8, "{name}: an essay, not a line");
        says_whose_rule_it_is(name, follows, &essay.join(" "));
        assert!(essay[0].starts_with('`'), "{name}");
        assert!(source.contains(&format!("`{name}`")), "{name} is not named in its essay");
        for p in params {
            assert!(!p.help.is_empty(), "{name}:{}", p.name);
            if let ParamKind::Number { min, max, default, .. } = p.kind {
                assert!((min..=max).contains(&default), "{name}:{}", p.name);
            }
        }
        let mut names: Vec<_> = params.iter().map(|p| p.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), params.len(), "{name}: a parameter twice");
    }
    assert!(speed::find("schedutil").is_some() && idle::find("teo").is_some());
    assert!(speed::find("nonesuch").is_none() && idle::find("").is_none());
}

/// Every bound of every number holds, and nothing but its words passes for a choice.
#[test]
fn every_parameter_refuses_what_it_should() {
    let lists = speed::ALL.iter().map(|p| p.params).chain(idle::ALL.iter().map(|p| p.params));
    for params in lists {
        for p in params {
            let set = |v: &str| Settings::parse(params, &format!("{}={v}", p.name));
            let bad = |v: &str| matches!(set(v), Err(SpecError::BadValue { param, .. }) if param == p.name);
            assert!(bad("") && bad("much") && bad("nan"), "{}", p.name);
            match p.kind {
                ParamKind::Number { unit, min, max, .. } => {
                    assert!(bad(&(min - 1.0).to_string()) && bad(&(max + 1.0).to_string()), "{}", p.name);
                    assert!(bad("1parsec") && bad("inf"), "{}", p.name);
                    let with_unit = set(&format!("{max}{unit}")).map(|s| s.number(p.name));
                    assert_eq!(with_unit, Ok(max), "{}", p.name);
                }
                ParamKind::Choice(words) => {
                    assert!(bad("0") && words.iter().all(|w| set(w).is_ok()), "{}", p.name);
                }
                ParamKind::Scale { max, words, .. } => {
                    assert!(bad(&(max + 1).to_string()) && bad("-1") && bad("0.5"), "{}", p.name);
                    assert!(words.iter().all(|(w, _)| set(w).is_ok()), "{}", p.name);
                }
            }
        }
        let unknown = Settings::parse(params, "no-such=1");
        assert!(matches!(unknown, Err(SpecError::UnknownParam { .. })));
        assert!(matches!(Settings::parse(params, "word"), Err(SpecError::NotAPair(_))));
    }
}

/// An approximation says so wherever its name, its rule or its text is shown.
#[test]
fn approximations_say_so() {
    let marked: Vec<_> = speed::ALL.iter().filter(|p| p.approximation().is_some()).map(|p| p.name).collect();
    assert_eq!(marked, ["powersaving", "hwp", "amd-pstate-epp"]);
    for p in ["hwp", "amd-pstate-epp"].map(|name| speed::find(name).expect("in the table")) {
        let essay: Vec<_> = wattwise_policy::essay(p.source).collect();
        assert!(
            p.follows.contains("approximation") && essay.join(" ").contains("approximation"),
            "{}",
            p.name
        );
    }
}

#[test]
fn policies_know_their_systems() {
    let on = |name: &str| speed::find(name).expect("in the table").systems();
    assert_eq!(on("performance"), System::ALL);
    assert_eq!((on("schedutil"), on("powerd")), (&[System::Linux][..], &[System::FreeBsd][..]));
    assert_eq!((on("obsdfreqd"), on("race-to-idle")), (&[System::OpenBsd][..], &[][..]));
    for system in System::ALL {
        assert_eq!(System::find(system.word()), Some(system));
        assert!(
            speed::ALL.iter().filter(|p| p.systems().contains(&system)).count() >= 4,
            "{}",
            system.title()
        );
    }
}
