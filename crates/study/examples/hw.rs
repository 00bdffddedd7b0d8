use std::io::Write;
use wattwise_study::hardware::*;
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args[0] == "run" {
        // run MACHINE WORK POLICY...
        let text = std::fs::read_to_string(&args[1]).unwrap();
        for p in &args[3..] {
            let s = table::Setting { machine: text.clone().into(), work: args[2].clone(), policy: p.clone() };
            match debug_run(&s) {
                Ok(m) => println!(
                    "{p:40} {:8.4} s  busy {:7.3} idle {:7.3} uncore {:7.3} mem {:7.3} W  {:5.0} MHz",
                    m.elapsed_s,
                    m.busy_j / m.elapsed_s,
                    m.idle_j / m.elapsed_s,
                    m.uncore_j / m.elapsed_s,
                    m.memory_j / m.elapsed_s,
                    m.mean_khz / 1e3
                ),
                Err(e) => println!("{p}: {e}"),
            }
        }
        return;
    }
    let quick = args.iter().any(|a| a == "--quick");
    let rows = args.iter().any(|a| a == "--rows");
    let only: Vec<&String> = args.iter().filter(|a| !a.starts_with("--")).collect();
    let dir = std::path::Path::new("hardware");
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|n| n != "machines")
        .collect();
    names.sort();
    if !only.is_empty() {
        names.retain(|n| only.iter().any(|o| n.contains(o.as_str())));
    }
    let mut tables = Vec::new();
    for n in &names {
        match table::Table::read(n, &table::Folder(&dir.join(n))) {
            Ok(t) => tables.push(t),
            Err(e) => println!("{e}"),
        }
    }
    let start = std::time::Instant::now();
    let done = std::sync::atomic::AtomicUsize::new(0);
    let scored = score(&tables, Effort { quick }, &|n| match n {
        Some(n) => eprintln!("{n} settings"),
        None => {
            let d = done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if d % 100 == 0 {
                eprint!("{d} ");
                std::io::stderr().flush().unwrap();
            }
        }
    });
    eprintln!("{:?}", start.elapsed());
    let f = |v: Option<f64>| v.map_or("   -  ".into(), |v| format!("{:6.1}", v * 100.0));
    let s = &scored.scores;
    println!(
        "{:28} {:>5} {:>5} {:>5} {:>5} sign tau med p95 cov | nodiff cube cubesign",
        "", "rows", "pred", "comp", "diff"
    );
    let line = |n: &str, r: usize, p: usize, h: &score::Held| {
        println!(
            "{:28} {:5} {:5} {:5} {:5} {} {} {} {} {} | {} {} {}",
            n,
            r,
            p,
            h.comparisons,
            h.differing,
            f(h.sign_right),
            f(h.tau),
            f(h.ratio_median_abs_error),
            f(h.ratio_p95_abs_error),
            f(h.coverage_90),
            f(h.no_difference_median_abs_error),
            f(h.cube_median_abs_error),
            f(h.cube_sign_right)
        )
    };
    for t in &s.by_table {
        line(&t.name, t.rows, t.predicted_rows, &t.held);
        for u in &t.unsaid {
            println!("      {} rows: {}", u.rows, u.why);
        }
    }
    for t in &s.by_mechanism {
        line(&t.name, 0, 0, &t.held);
    }
    for t in &s.by_class {
        line(&t.name, 0, 0, &t.held);
    }
    println!(
        "ALL tables {} rows {} pred {} comp {} sign {} tau {} med {} p95 {} cov {}",
        s.tables,
        s.rows,
        s.predicted_rows,
        s.comparisons,
        f(s.sign_right),
        f(s.tau),
        f(s.ratio_median_abs_error),
        f(s.ratio_p95_abs_error),
        f(s.coverage_90)
    );
    for k in &s.know_nothing {
        println!(
            "  {} {} {} {}",
            k.name,
            f(k.sign_right),
            f(k.ratio_median_abs_error),
            f(k.ratio_p95_abs_error)
        );
    }
    if rows {
        for (t, c) in tables.iter().zip(&scored.compared) {
            println!("== {}", t.name);
            for c in &c.comparisons {
                let r = &t.rows[c.row];
                println!(
                    "{:5} {:60.60} {:8} meas {:.3} pred {:.3} [{:.3} {:.3}] {}{} cube {:.3}",
                    r.number,
                    format!("{} | {}", r.work, r.label),
                    t.quantities[c.quantity].word(),
                    c.measured,
                    c.predicted,
                    c.low,
                    c.high,
                    if c.differs() {
                        if c.is_sign_right(c.predicted) { "ok " } else { "XX " }
                    } else {
                        "=  "
                    },
                    if c.covers() { "" } else { "out" },
                    c.cube
                );
            }
        }
    }
}
