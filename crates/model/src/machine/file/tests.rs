use super::*;
use crate::machine::Confidence;

/// A sound file with one line replaced.
fn with(from: &str, to: &str) -> Result<MachineModel, MachineError> {
    let text = "name = 'x'\nsummary = 'y'\n\
            [topology]\npackages = 2\nclocks = 'core'\nsource = 's'\nconfidence = 'guess'\n\
            [[kind]]\nname = 'core'\ncores = 2\nthreads = 2\nsmt_throughput = [1.0, 0.6]\nsmt_power = [1.0, 1.2]\nsource = 's'\nconfidence = 'guess'\n\
            [kind.speeds]\nmhz = [2000, 1000]\nbusy_w = [8.0, 3.0]\nsource = 's'\nconfidence = 'fitted'\n\
            [kind.transition]\nstall_us = [[0, 5], [7, 0]]\ndelay_us = 3\nsource = 's'\nconfidence = 'measured'\n\
            [kind.boost]\nmax_mhz = [2000, 1000]\nsource = 's'\nconfidence = 'guess'\n\
            [kind.idle]\nstates = [{ name = 'C1', latency_us = 2, target_us = 4, watts = 2.0, lowest_watts = 1.0 }, { name = 'C6', latency_us = 100, entry_us = 30, target_us = 400, watts = 0.2 }]\nsource = 's'\nconfidence = 'kernel-table'\n\
            [package]\nuncore_w = 2.0\nidle = [{ name = 'PC6', needs = 'C6', watts = 0.5, exit_us = 50 }]\nsource = 's'\nconfidence = 'guess'\n\
            [thermal]\nambient_c = 25\nc_per_w = 2\ntau_s = 10\ncritical_c = 90\nsource = 's'\nconfidence = 'guess'\n\
            [platform]\nwatts = 5.0\nsource = 's'\nconfidence = 'guess'\n";
    assert!(from.is_empty() || text.contains(from), "{from}");
    parse(&text.replacen(from, to, 1), "m.toml")
}

#[test]
fn a_file_becomes_a_machine() {
    let m = with("", "").unwrap();
    assert_eq!((m.cpus.len(), m.cores.len(), m.packages.len(), m.domains.len()), (8, 4, 2, 4));
    assert_eq!(m.cores[3].cpus, [6, 7]);
    assert_eq!(m.packages[1].domains, [2, 3]);
    assert_eq!(m.domains[0].transition.stall_ns, [0, 5000, 7000, 0]);
    assert_eq!(m.domains[0].boost, [0, 0, 1]);
    let k = &m.kinds[0];
    assert_eq!(k.idle[0].watts, [2.0, 1.0]);
    assert_eq!((k.idle[1].entry_ns, k.idle[1].exit_ns[0]), (30_000, 70_000));
    let trust = |what: &str| m.provenance.iter().find(|f| f.what == what).map(|f| f.confidence);
    assert_eq!(trust("kind.core.speeds"), Some(Confidence::Fitted));
    assert_eq!(trust("kind.core.idle"), Some(Confidence::KernelTable));
    let tables = m.provenance.iter().filter(|f| f.source == "s").count();
    assert_eq!(tables, 9);
}

#[test]
fn the_memory_is_a_table_of_its_own() {
    let with_memory = |table: &str| {
        with("[platform]", &format!("[memory]\n{table}\nsource = 's'\nconfidence = 'measured'\n[platform]"))
    };
    let m = with_memory("watts = 1.5\nbusy_w = 0.25").unwrap();
    assert_eq!((m.memory.rest_w, m.memory.busy_w), (1.5, 0.25));
    let (plain, own) = (with("", "").unwrap().rest_and_full_w(), m.rest_and_full_w());
    // Two packages of two cores.
    assert!(
        (own.0 - plain.0 - 3.0).abs() < 1e-12 && (own.1 - plain.1 - 4.0).abs() < 1e-12,
        "{own:?} {plain:?}"
    );
    let figure = m.figures().iter().find(|f| f.what == "memory.busy_w").unwrap();
    assert!(figure.nominal == 0.25 && figure.low < 0.25 && figure.high > 0.25, "{figure:?}");
    let (drawn, _) = m.draw(3);
    assert!(drawn.memory.rest_w > 0.0 && drawn.memory != m.memory, "{:?}", drawn.memory);
    assert_eq!(with_memory("watts = 1.5").unwrap().memory.busy_w, 0.0);
    let wrong = with_memory("watts = -1.0").unwrap_err().to_string();
    assert!(wrong.contains("memory.watts"), "{wrong}");
}

#[test]
fn figures_from_elsewhere_and_defaults_have_a_line_of_their_own() {
    let m = with(
            "confidence = 'kernel-table'",
            "confidence = 'kernel-table'\nsources.watts = { source = 'a meter', confidence = 'measured' }\nsources.C6 = { source = 'nobody', confidence = 'guess' }",
        )
        .unwrap();
    let find = |what: &str| m.provenance.iter().find(|f| f.what == what).unwrap();
    assert_eq!(find("kind.core.idle.watts").confidence, Confidence::Measured);
    assert_eq!(find("kind.core.idle.C6").source, "nobody");
    for what in [
        "topology.llc",
        "kind.core.speeds.stall_share",
        "platform.migration_us",
        "platform.interrupt_us",
        "wakeup.ipi_us",
        "wakeup.lines",
        "wakeup.line_ns",
        "tick",
    ] {
        assert_eq!(find(what).confidence, Confidence::Guess);
        assert!(find(what).source.starts_with("not in the file"), "{what}");
    }
    let whats: std::collections::BTreeSet<&str> = m.provenance.iter().map(|f| f.what.as_str()).collect();
    assert_eq!(whats.len(), m.provenance.len());
}

#[test]
fn a_slow_clock_leaves_a_state_slower() {
    let m =
        with("mhz = [2000, 1000]\nbusy_w = [8.0, 3.0]", "mhz = [2000, 1600, 1000]\nbusy_w = [8.0, 5.0, 3.0]");
    assert!(m.is_err_and(|e| e.to_string().contains("3 rows of 3")));
    let m = with("entry_us = 30", "exit_us = 40, lowest_exit_us = 50").unwrap();
    assert_eq!(m.kinds[0].idle[1].exit_ns, [40_000, 50_000]);
    assert_eq!(m.kinds[0].idle[1].latency_ns, 100_000);
    let level = |mhz: u32| SpeedLevel {
        khz: mhz * 1000,
        cycles_per_ns: 1.0,
        busy_w: 1.0,
        stall_w: 1.0,
        model_uw: 0,
        throttled: false,
    };
    // Periods 1, 1.25 and 2: a quarter of the way at 1600 MHz.
    assert_eq!(exit_ns(40_000, 50_000, &[level(2000), level(1600), level(1000)]), [40_000, 42_500, 50_000]);
}

#[test]
fn a_file_builds_on_a_bundled_machine() {
    let m = parse("base = 'omap3530'\nname = 'mine'\n[platform]\nwatts = 3.0\nsource = 'a meter'\nconfidence = 'measured'", "m.toml").unwrap();
    assert_eq!((m.name.as_str(), m.platform_w), ("mine", 3.0));
    assert_eq!(m.kinds[0].levels.len(), 5);
    let e = parse("base = 'omap3530'\n[package]\nuncor_w = 1.0", "m.toml").unwrap_err().to_string();
    assert!(
        e.starts_with("m.toml: package: unknown field `uncor_w`")
            && e.contains("did you mean \"uncore_w\"")
            && !e.contains('\n'),
        "{e}"
    );
    let e = parse("base = 'omap3350'", "m.toml").unwrap_err().to_string();
    assert!(e.contains("did you mean \"omap3530\""), "{e}");
}

#[test]
fn volts_make_watts() {
    let m = with("busy_w = [8.0, 3.0]", "volts = [1.5, 1.0]\ncapacitance_nf = 2.0\nleak_a = 1.0").unwrap();
    // 2 nF x 1.5^2 x 2 GHz + 1 A x 1.5 V.
    assert!((m.kinds[0].levels[0].busy_w - 10.5).abs() < 1e-12);
}

#[test]
fn duty_cycles_become_speeds() {
    let t = "[kind.tstates]\nstep_percent = 12.5\nloss_percent = 2\nin_speed_table = true\nsource = 's'\nconfidence = 'guess'\n[kind.transition]\nstall_us = [[0, 5], [7, 0]]";
    let m = with("[kind.transition]\nstall_us = [[0, 5], [7, 0]]", t).unwrap();
    let khz: Vec<u32> = m.kinds[0].levels.iter().map(|l| l.khz / 1000).collect();
    assert_eq!(khz, [2000, 1750, 1500, 1250, 1000, 875, 750, 625, 500, 375, 250, 125]);
    let n = khz.len();
    assert_eq!(m.domains[0].transition.stall_ns[n + 4], 5000);
    assert_eq!(m.domains[0].transition.stall_ns[5 * n + 11], 0);
    // Half the clock of the slower P-state, and C1's power for the other half.
    assert!((m.kinds[0].levels[8].busy_w - (3.0 * 0.5 + 1.0 * 0.5)).abs() < 1e-12);
    assert!((m.kinds[0].levels[1].cycles_per_ns - 1.75 * 0.98).abs() < 1e-12);
}

#[test]
fn impossible_figures_are_refused_in_one_line() {
    for (from, to, part) in [
        ("mhz = [2000, 1000]", "mhz = [1000, 2000]", "fastest first"),
        ("mhz = [2000, 1000]", "mhz = [2000, nan]", "speeds.mhz"),
        ("busy_w = [8.0, 3.0]", "busy_w = [-8.0, 3.0]", "busy_w"),
        ("busy_w = [8.0, 3.0]", "busy_w = [2.0, 3.0]", "draws more"),
        ("busy_w = [8.0, 3.0]", "busy_w = [8.0]", "expected busy_w or volts"),
        (
            "latency_us = 100, entry_us = 30, target_us = 400",
            "latency_us = 100, target_us = 50",
            "under its exit time",
        ),
        ("watts = 0.2", "watts = 3.2", "deeper states"),
        ("[[0, 5], [7, 0]]", "[[0, 5]]", "2 rows of 2"),
        ("packages = 2", "packages = 1000", "CPUs"),
        ("packages = 2", "packages = 0", "CPUs"),
        ("cores = 2", "cores = 0", "cores"),
        ("threads = 2", "threads = 9", "threads"),
        ("smt_power = [1.0, 1.2]", "smt_power = [1.0]", "smt_power"),
        ("needs = 'C6'", "needs = 'C9'", "no such C-state"),
        ("max_mhz = [2000, 1000]", "max_mhz = [2000, 1500]", "not one of the speeds"),
        ("max_mhz = [2000, 1000]", "max_mhz = [1000, 2000]", "never allow"),
        ("tau_s = 10", "tau_s = 0", "tau_s"),
        ("confidence = 'guess'\n", "", "confidence"),
        ("source = 's'", "source = ' '", "source is empty"),
        ("confidence = 'guess'", "confidence = 'hope'", "unknown word"),
        ("uncore_w = 2.0", "uncore_watts = 2.0", "line 35: package: unknown field `uncore_watts`"),
        ("latency_us = 2", "latency_us = 'two'", "kind.idle.states.latency_us: invalid type"),
        ("summary = 'y'", "summary = 'y'\nbase = 'nobody'", "no bundled machine"),
        ("name = 'x'", "name = ", "line 1"),
        ("name = 'x'", "name = ' '", "name is empty"),
        ("uncore_w = 2.0", "uncor_w = 2.0", "did you mean \"uncore_w\"?"),
        ("watts = 5.0", "watts = -5.0", "platform.watts = -5: expected 0 to 10000 W"),
        ("watts = 5.0", "watts = 1e9", "platform.watts"),
        ("watts = 5.0", "watts = nan", "platform.watts"),
        ("watts = 5.0", "watts = 5.0\nbattery_wh = 0", "platform.battery_wh"),
        ("name = 'C6'", "name = 'C1'", "idle C1: twice"),
        ("name = 'C6'", "name = ''", "a name is empty"),
        ("name = 'core'", "name = ''", "a name is empty"),
        ("latency_us = 100", "latency_us = 1", "deeper states"),
        ("target_us = 400", "target_us = 400, lowest_exit_us = 20", "a slow clock is not quicker"),
        ("lowest_watts = 1.0", "lowest_watts = 3.0", "lowest_watts 3 is over"),
        ("watts = 2.0,", "watts = 9.0,", "more than a busy core"),
        ("[[0, 5], [7, 0]]", "[[1, 5], [7, 0]]", "diagonal"),
        ("[[0, 5], [7, 0]]", "[[0, -5], [7, 0]]", "stall_us = -5"),
        ("busy_w = [8.0, 3.0]", "busy_w = [8.0, 3.0]\nleak_a = 1", "go with volts"),
        ("busy_w = [8.0, 3.0]", "volts = [1.0, 1.1]\ncapacitance_nf = 1", "never needs more volts"),
        ("busy_w = [8.0, 3.0]", "busy_w = [8.0, 3.0]\nstall_share = 1.5", "stall_share"),
        ("mhz = [2000, 1000]", "mhz = [2000, 2000]", "none twice"),
        ("max_mhz = [2000, 1000]", "max_mhz = []", "empty"),
        ("smt_throughput = [1.0, 0.6]", "smt_throughput = [1.0]", "smt_throughput: expected 2"),
        ("ambient_c = 25", "ambient_c = 95", "critical_c"),
        ("clocks = 'core'", "clocks = 'cores'", "did you mean \"core\"?"),
        (
            "confidence = 'kernel-table'",
            "confidence = 'kernel-table'\nsources.wats = { source = 's', confidence = 'guess' }",
            "did you mean \"watts\"?",
        ),
        (
            "confidence = 'kernel-table'",
            "confidence = 'kernel-table'\nsources.watts = { source = '', confidence = 'guess' }",
            "source is empty",
        ),
        (
            "[kind.transition]",
            "[kind.tstates]\nstep_percent = 10\nloss_percent = 2\nin_speed_table = true\nsource = 's'\nconfidence = 'guess'\n[kind.transition]",
            "12.5 or 6.25",
        ),
        (
            "[package]",
            "[[kind]]\nname = 'small'\ncores = 1\nsource = 's'\nconfidence = 'guess'\n[kind.speeds]\nmhz = [1000]\nbusy_w = [1.0]\nsource = 's'\nconfidence = 'guess'\n[kind.idle]\nstates = [{ name = 'C1', latency_us = 2, target_us = 4, watts = 0.2 }]\nsource = 's'\nconfidence = 'guess'\n[package]",
            "never reached",
        ),
    ] {
        let message = with(from, to).unwrap_err().to_string();
        assert!(message.starts_with("m.toml: ") && message.contains(part), "{to}: {message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

/// Whatever a slip of the hand makes of a good file, the answer is a machine or one line.
#[test]
#[ignore = "long: make test runs it"]
fn damaged_files_never_panic() {
    // Of the measured ones, which one program writes, some.
    for name in builtin::written().chain(builtin::measured().take(3)) {
        let lines: Vec<&str> = builtin::text(name).unwrap().lines().collect();
        for i in 0..lines.len() {
            let (key, value) = lines[i].split_once('=').unwrap_or((lines[i], ""));
            let less = value.trim_start_matches(|c| c != ',').to_owned();
            let damaged = ["0", "-1", "1e308", "nan", "inf", "1e-300", "[]", "[0, 0]", "''", "{}", &less];
            let damaged = damaged.iter().map(|v| format!("{key} = {v}"));
            for line in damaged.chain([String::new(), format!("{0}\n{0}", lines[i])]) {
                let mut text = lines.clone();
                text[i] = &line;
                if let Err(e) = parse(&text.join("\n"), "m.toml") {
                    assert!(!e.to_string().contains('\n'), "{e}");
                }
            }
        }
    }
}

#[test]
fn the_base_speed_is_the_files_or_what_boost_leaves_to_all() {
    let base = |m: Result<MachineModel, MachineError>| m.map(|m| m.kinds[0].base_khz);
    // Two cores a package, and the boost table's second entry is 1000 MHz.
    assert_eq!(base(with("", "")), Ok(1_000_000));
    assert_eq!(base(with("busy_w = [8.0, 3.0]", "busy_w = [8.0, 3.0]\nbase_mhz = 1500")), Ok(1_500_000));
    let error = base(with("busy_w = [8.0, 3.0]", "busy_w = [8.0, 3.0]\nbase_mhz = 2500")).unwrap_err();
    assert!(
        error.to_string().contains("kind.core.speeds.base_mhz = 2500: expected 1000 to 2000 MHz"),
        "{error}"
    );
    let none = with("[kind.boost]\nmax_mhz = [2000, 1000]\nsource = 's'\nconfidence = 'guess'\n", "");
    assert_eq!(base(none), Ok(2_000_000));
}

/// As Linux 6.12 has it; the boost of more than one core is 1000 MHz here, and that of one 2000.
#[test]
fn full_load_is_at_the_speed_that_the_system_takes_for_it() {
    let full =
        |told: &str| with("watts = 5.0", &format!("watts = 5.0\n{told}")).map(|m| m.kinds[0].load_full_khz);
    for (told, khz) in [
        ("", 2_000_000),
        ("driver = 'cpufreq-dt'", 2_000_000),
        ("driver = 'intel_cpufreq'", 1_000_000),
        ("driver = 'acpi-cpufreq'", 1_000_000),
        ("driver = 'amd-pstate'", 1_500_000),
        ("driver = 'intel_cpufreq'\nload_full_cores = 1", 2_000_000),
        ("load_full_cores = 12", 1_000_000),
    ] {
        assert_eq!(full(told), Ok(khz), "{told}");
    }
    let amd = with("name = 'x'", "name = 'x'\ncpu_names = ['EPYC 7502']").unwrap();
    assert_eq!(amd.kinds[0].load_full_khz, 1_500_000);
    let shares =
        |m: &MachineModel| m.kinds[0].levels.iter().map(|l| m.kinds[0].load_share(l)).collect::<Vec<_>>();
    assert_eq!(shares(&amd), [1.0, 1.0 / 1.5]);
    assert!(full("load_full_cores = 0").unwrap_err().to_string().contains("load_full_cores = 0: expected 1"));
}

#[test]
fn a_system_its_driver_and_its_policy() {
    let m = with("", "").unwrap();
    assert_eq!((m.system.as_str(), m.driver.as_str(), m.default_policy.as_str()), ("linux", "", "schedutil"));
    let told = "watts = 5.0\nsystem = 'freebsd'\ndriver = 'est'\ndefault_policy = 'powerd'";
    let m = with("watts = 5.0", told).unwrap();
    assert_eq!(
        (m.system.as_str(), m.driver.as_str(), m.default_policy.as_str()),
        ("freebsd", "est", "powerd")
    );
}

#[test]
fn caches_are_shared_as_the_file_says() {
    let llcs = |line: &str| {
        let m = with("clocks = 'core'", &format!("clocks = 'core'\n{line}"));
        m.map(|m| m.cpus.iter().map(|c| c.llc).collect::<Vec<u16>>())
    };
    assert_eq!(llcs("").unwrap(), [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(llcs("llc = 'package'").unwrap(), [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(llcs("llc = 'core'").unwrap(), [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(llcs("llc = 1").unwrap(), llcs("llc = 'core'").unwrap());
    let wrong = llcs("llc = 3").unwrap_err().to_string();
    assert!(wrong.contains("topology.llc = 3: expected 1 to 2 cores"), "{wrong}");
    assert!(llcs("llc = 'socket'").is_err());
}

#[test]
fn distance_has_its_price() {
    use crate::machine::Distance;
    let table =
        "[wakeup]\nlines = 10\nline_ns = [4, 40, 80, 200]\nsource = 's'\nconfidence = 'measured'\n[platform]";
    let m = with("[platform]", table).unwrap();
    assert_eq!([m.distance(0, 0), m.distance(0, 1)], [Distance::Same, Distance::Core]);
    assert_eq!([m.distance(0, 2), m.distance(0, 4)], [Distance::Llc, Distance::Machine]);
    assert_eq!(m.apart.read_ns(Distance::Machine), 2000);
    assert_eq!(m.apart.refill_ns(5000, Distance::Core), 500);
    assert_eq!(m.apart.refill_ns(5000, Distance::Llc), 5000);
    assert_eq!(Apart::FREE.refill_ns(5000, Distance::Core), 5000);
    assert_eq!(
        m.provenance.iter().filter(|f| f.what.starts_with("wakeup")).count(),
        2,
        "the table and ipi_us"
    );
    let wrong = with("[platform]", &table.replace("200", "20"));
    assert!(wrong.is_err_and(|e| e.to_string().contains("farther")));
}

/// The example of the format's head, on the machine of these tests.
#[test]
fn the_uncore_and_the_memory_follow_the_fastest_core() {
    let uncore = |lines: &str| {
        with("[platform]", &format!("[uncore]\n{lines}\nsource = 's'\nconfidence = 'guess'\n[platform]"))
    };
    let m = uncore("step_w = 5.8\nstep_mhz = 1500\ndelay_us = 10000\nhold_us = 20000\nvotes = 'C6'").unwrap();
    let u = m.packages[0].uncore.as_ref().unwrap();
    assert_eq!((&u.khz[..], u.fast, &u.at[..]), (&[2_000_000, 1_000_000][..], 1, &[vec![0, 1]][..]));
    assert_eq!((u.delay_ns, u.hold_ns, u.votes), (10_000_000, 20_000_000, 1));
    assert!(m.figures().iter().any(|f| f.what == "uncore.step_w"));
    let memory = "[memory]\nmodules = 6\nwatts = 0.16\nhigh_w = 0.36\nself_refresh_w = 0.1\nsource = 's'\nconfidence = 'guess'";
    let m = uncore(&format!(
        "step_w = 5.8\nstep_mhz = 1500\nsource = 's'\nconfidence = 'guess'\n{}",
        memory.trim_end_matches("source = 's'\nconfidence = 'guess'")
    ))
    .unwrap();
    let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
    assert!(
        close(m.memory.rest_w, 0.96) && close(m.memory.high_w, 2.16) && close(m.memory.asleep_less_w, 0.36)
    );
    for (lines, told) in [
        ("step_w = 5.8", "expected step_mhz"),
        ("follow_w = -1", "uncore.follow_w"),
        ("follow_w = 1\nvotes = 'C9'", "expected a C-state of the first kind: C1, C6"),
    ] {
        let message = uncore(lines).unwrap_err().to_string();
        assert!(message.contains(told) && !message.contains('\n'), "{message}");
    }
    let alone =
        with("[platform]", "[memory]\nwatts = 1\nhigh_w = 1\nsource = 's'\nconfidence = 'guess'\n[platform]");
    assert!(alone.unwrap_err().to_string().contains("give [uncore]"));
}

/// By hand: 1 nF at 2000 MHz and 1.1 V with 0.1 V of turbo; at 1000 MHz the voltage of 1500 MHz; a speed of 500 MHz runs at 1000.
#[test]
fn the_voltage_has_a_flat_end_and_a_cliff() {
    let speeds = |more: &str| {
        with(
            "mhz = [2000, 1000]\nbusy_w = [8.0, 3.0]",
            &format!("mhz = [2000, 1000]\nvolts = [1.0, 0.8]\ncapacitance_nf = 4.0\n{more}"),
        )
    };
    let watts =
        |more: &str| speeds(more).unwrap().kinds[0].levels.iter().map(|l| l.busy_w).collect::<Vec<f64>>();
    let close = |a: &[f64], b: [f64; 2]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
    assert!(close(&watts(""), [8.0, 2.56]));
    assert!(close(&watts("flat_mhz = 1500"), [8.0, 4.0 * 0.9 * 0.9]));
    assert!(close(&watts("base_mhz = 1000\nturbo_volts = 0.1"), [4.0 * 1.1 * 1.1 * 2.0, 2.56]));
    let held = speeds("effective_min_mhz = 1500").unwrap();
    let levels = &held.kinds[0].levels;
    assert_eq!((levels[1].khz, levels[1].cycles_per_ns), (1_000_000, 1.5));
    assert!(close(&[levels[0].busy_w, levels[1].busy_w], [8.0, (8.0 + 2.56) / 2.0]));
    assert!(speeds("turbo_volts = 0.1").unwrap_err().to_string().contains("expected base_mhz"));
}
