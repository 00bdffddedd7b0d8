//! Imports a recording and says how fast, and with how much memory: `import_rate FILE [summary]`.

use std::time::Instant;
use wattwise_model::workload::Program;
use wattwise_trace::{ImportOptions, Source, import, summarise};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: import_rate FILE [summary]")?;
    let options = ImportOptions::default();
    let start = Instant::now();
    if std::env::args().nth(2).is_some() {
        println!("{}", summarise(Source::Path(path.into()), &options)?);
        println!("{:.2?}", start.elapsed());
        return Ok(());
    }
    let workload = import(Source::Path(path.into()), &options)?;
    let s = start.elapsed().as_secs_f64();
    let recorded = workload.recorded.as_ref().ok_or("not a recording")?;
    let (mut ops, mut bytes) = (0, 0);
    for task in &workload.tasks {
        let Program::Recorded(script) = &task.program else { continue };
        ops += script.ops();
        bytes += script.size();
    }
    let peak = std::fs::read_to_string("/proc/self/status")?;
    let peak = peak.lines().find(|l| l.starts_with("VmHWM")).unwrap_or("").to_owned();
    let rate = recorded.events as f64 / s / 1e6;
    println!("{} events in {s:.2} s: {rate:.2} M/s; {peak}", recorded.events);
    println!(
        "{} tasks, {ops} ops in {bytes} bytes, {:.1} s",
        workload.tasks.len(),
        workload.span_ns as f64 / 1e9
    );
    println!("busy {:?} ns, lost {}", recorded.busy_ns, recorded.lost);
    recorded.warnings.iter().for_each(|w| println!("warning: {w}"));
    Ok(())
}
