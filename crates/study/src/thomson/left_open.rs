//! Study 000: sections 2.3, 3.4 and 5 name what could come next.

use crate::open::{Open, change};
use crate::thomson::{COMMON_PERIOD_NS, KHZ, PHASES, REST_NS, descent, job_cycles, laptop, runtimes};
use crate::{StudyBench, StudyError, workload};
use wattwise_figure::mean_sd;
use wattwise_model::machine::{builtin, file};
use wattwise_model::workload::{Dist, Step};
use wattwise_policy::MS;
use wattwise_replay::library::LibraryError;

/// Lengths of the busy time before a descent, in ms: they end at different phases of the ticks.
const BUSY_MS: [u64; 4] = [4000, 4003, 4007, 4011];

/// Bursts of so many ms, every 2.25 s.
const BURSTS_MS: [u64; 3] = [100, 300, 600];

pub(crate) fn questions(bench: &StudyBench, throttled: &StudyBench) -> Result<Vec<Open>, StudyError> {
    let mut out = vec![steps_down(throttled)?];
    out.extend(other_detectors(bench)?);
    out.push(own_clocks()?);
    let watts = |policy: &str| -> Result<Vec<f64>, StudyError> {
        BURSTS_MS.iter().map(|&ms| mean_watts(bench, policy, ms)).collect()
    };
    let (old, new) = (watts("powerd:mode=hiadaptive,poll=260")?, watts("burst")?);
    // 1000 laptops that do so all day.
    let mwh: Vec<f64> = old.iter().zip(&new).map(|(o, n)| (o - n) * 1000.0 * 8760.0 * 1e-6).collect();
    out.push(Open::tried(
        "What does it save in a fleet?",
        "Bursts of 100, 300 and 600 ms every 2.25 s on 1000 such machines for a year: the new algorithm against powerd \
         (hiadaptive), the processor alone.",
        "MWh a year",
        &mwh,
    ));
    Ok(out)
}

fn steps_down(throttled: &StudyBench) -> Result<Open, StudyError> {
    let seconds = |policy: &str| -> Result<Vec<f64>, StudyError> {
        let one = |&ms: &u64| Ok(descent(throttled, policy, ms * MS, 40_000 * MS)?.0);
        BUSY_MS.iter().map(one).collect()
    };
    let (single, larger) = (seconds("burst")?, seconds("burst:down=proportional")?);
    let saved: Vec<f64> = single.iter().zip(&larger).map(|(s, l)| (s - l) * 1e3).collect();
    Ok(Open::tried(
        "Would larger steps down come down sooner?",
        "From the highest to the lowest of 18 speeds: a level at a time against burst:down=proportional, at four phases of the tick.",
        "ms sooner",
        &saved,
    ))
}

/// Other ways to see that a CPU is busy, against the counted ticks: run time and energy of the job.
fn other_detectors(bench: &StudyBench) -> Result<Vec<Open>, StudyError> {
    let (ticks, base) = (runtimes(bench, "burst")?, job_joules(bench, "burst")?);
    let against = |question: &'static str,
                   machine: &StudyBench,
                   policy: &str,
                   what: &str|
     -> Result<[Open; 2], StudyError> {
        let times = runtimes(machine, policy)?;
        let sooner: Vec<f64> = ticks.iter().zip(&times).map(|(t, o)| t - o).collect();
        let more: Vec<f64> =
            base.iter().zip(&job_joules(machine, policy)?).map(|(b, e)| change(*b, *e)).collect();
        let mean_ms = mean_sd(&times).0;
        let [when, energy] = ["at 199 start phases", "of the processor, in the second that the job is in"];
        Ok([
            Open::tried(
                question,
                &format!("{what} The job of 229.2 ms {when}: {mean_ms:.1} ms."),
                "ms sooner",
                &sooner,
            ),
            Open::tried(question, &format!("{what} Energy {energy}."), "% energy", &more),
        ])
    };
    let mut quick = laptop()?;
    quick.machine.tick.period_ns = MS;
    let mut out = Vec::new();
    out.extend(against(
        "Would a hook in the idle loop be quicker than counted ticks?",
        &quick,
        "burst:busy=0",
        "A decision within 1 ms of the CPU's leaving idle stands for the hook.",
    )?);
    out.extend(against(
        "Would counters tell a busy CPU better than counted ticks?",
        bench,
        "ondemand:rate=10000",
        "ondemand every 10 ms, which goes by the CPU's busy time and not by samples at ticks.",
    )?);
    out.push(deep_sleep_too(bench)?);
    Ok(out)
}

/// Joules of the processor in the second that the job begins in, at some of the start phases.
fn job_joules(bench: &StudyBench, policy: &str) -> Result<Vec<f64>, StudyError> {
    const EVERY: usize = 10;
    const SECOND_NS: u64 = 1000 * MS;
    let phases: Vec<u64> = (0..PHASES).step_by(EVERY).collect();
    wattwise_threads::map(phases, |i| {
        let start = REST_NS + COMMON_PERIOD_NS * i / PHASES;
        let w = workload("python", KHZ, vec![(start, 1, vec![Step::Run(Dist::Fixed(job_cycles()))])]);
        let mut sim = bench.simulation(&w, policy, |_| {})?;
        let joules = |o: &wattwise_sim::outcome::Outcome| o.energy.package_j.iter().sum::<f64>();
        let before = joules(&sim.run_until(start));
        Ok(joules(&sim.run_until(start + SECOND_NS)) - before)
    })
}

/// Speed and sleep decided together: what the sleep at rest is worth beside the speed.
fn deep_sleep_too(bench: &StudyBench) -> Result<Open, StudyError> {
    let watts = |policy: &str| -> Result<Vec<f64>, StudyError> {
        BURSTS_MS.iter().map(|&ms| mean_watts(bench, policy, ms)).collect()
    };
    let apart = watts("performance+fixed:depth=0")?;
    let speed = watts("burst+fixed:depth=0")?;
    let both = watts("burst+menu")?;
    let more: Vec<f64> = (0..BURSTS_MS.len()).map(|i| (speed[i] - both[i]) / apart[i] * 100.0).collect();
    Ok(Open::tried(
        "What if speed and sleep were decided together?",
        "Bursts of 100, 300 and 600 ms every 2.25 s: what sleeping deeper than C1 saves once burst has lowered the speed, of the power \
         without either.",
        "% of the power",
        &more,
    ))
}

/// Mean power in W under bursts.
fn mean_watts(bench: &StudyBench, policy: &str, ms: u64) -> Result<f64, StudyError> {
    const SPAN_NS: u64 = 18_000 * MS;
    let steps = vec![Step::Period(2250 * MS), Step::Run(Dist::Fixed(ms * u64::from(KHZ)))];
    let w = workload("bursts", KHZ, vec![(0, SPAN_NS / (2250 * MS), steps)]);
    let mut sim = bench.simulation(&w, policy, |s| s.initial_khz = 1)?;
    let o = sim.run_until(SPAN_NS);
    Ok(o.energy.package_j.iter().sum::<f64>() / (o.elapsed_ns as f64 * 1e-9))
}

/// A clock for each core or one for the package: two cores, one of which has work.
fn own_clocks() -> Result<Open, StudyError> {
    const NAME: &str = "i7-4510u";
    const SPAN_NS: u64 = 10_000 * MS;
    let text = builtin::text(NAME).unwrap_or_default();
    let machine = |clocks: &str| {
        let text = text.replace("clocks = \"package\"", &format!("clocks = \"{clocks}\""));
        let parsed =
            file::parse(&text, NAME).map_err(|e| StudyError::Library(LibraryError::MachineModel(e)))?;
        let mut bench = StudyBench::on(parsed)?;
        // burst counts ticks of idle CPUs too, as FreeBSD 8.1 has them.
        bench.machine.tick.tickless = false;
        Ok::<_, StudyError>(bench)
    };
    let (one, own) = (machine("package")?, machine("core")?);
    let watts = |bench: &StudyBench, ms: u64| -> Result<f64, StudyError> {
        let khz = bench.machine.kinds[0].levels[0].khz;
        let burst = |period: u64, ms: u64| {
            vec![Step::Period(period * MS), Step::Run(Dist::Fixed(ms * u64::from(khz)))]
        };
        // The second task's bursts are too short to be noticed: its core need not be fast.
        let tasks = vec![(0, u64::MAX, burst(2250, ms)), (0, u64::MAX, burst(50, 5))];
        let w = workload("two", khz, tasks);
        let mut sim = bench.simulation(&w, "burst", |_| {})?;
        let o = sim.run_until(SPAN_NS);
        Ok(o.energy.package_j.iter().sum::<f64>() / (o.elapsed_ns as f64 * 1e-9))
    };
    let saved = BURSTS_MS
        .iter()
        .map(|&ms| Ok(-change(watts(&one, ms)?, watts(&own, ms)?)))
        .collect::<Result<Vec<f64>, StudyError>>()?;
    Ok(Open::tried(
        "Should each core have a clock of its own?",
        "Two cores (i7-4510u) under burst, one with bursts of 100, 300 or 600 ms every 2.25 s, the other with 5 ms every 50 ms: own \
         clocks against a clock for the package.",
        "% saved",
        &saved,
    ))
}
