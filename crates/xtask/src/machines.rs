//! Makes from `machines/data` what is made of it: the server estimator, a machine file for each SoC of freqbench, and the
//! table of what each model rests on (`docs/notes/machines.md`). With `--check` it only compares (a CI job).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use wattwise_figure::ridge::{self, Points};
use wattwise_model::estimate::cluster::{self, Cluster, Ends};
use wattwise_model::estimate::server::{self, MeasuredServer, Server};
use wattwise_model::estimate::{Watts, data};
use wattwise_model::machine::{MachineModel, builtin, file};

/// Cores of each cluster, in the order of their CPUs. Source: the vendors' product pages.
const CORES: &[(&str, &str, &[usize])] = &[
    ("exynos5250", "Samsung Exynos 5 Dual", &[2]),
    ("exynos7880", "Samsung Exynos 7880", &[4, 4]),
    ("gs101", "Google Tensor", &[4, 2, 2]),
    ("msm8953", "Qualcomm Snapdragon 625", &[8]),
    ("msm8996", "Qualcomm Snapdragon 820", &[2, 2]),
    ("msm8998", "Qualcomm Snapdragon 835", &[4, 4]),
    ("sdm439", "Qualcomm Snapdragon 439", &[4, 4]),
    ("sdm630", "Qualcomm Snapdragon 630", &[4, 4]),
    ("sdm632", "Qualcomm Snapdragon 632", &[4, 4]),
    ("sdm636", "Qualcomm Snapdragon 636", &[4, 4]),
    ("sdm670", "Qualcomm Snapdragon 670", &[6, 2]),
    ("sdm845", "Qualcomm Snapdragon 845", &[4, 4]),
    ("sm6115", "Qualcomm Snapdragon 662", &[4, 4]),
    ("sm6150", "Qualcomm Snapdragon 675", &[6, 2]),
    ("sm7125", "Qualcomm Snapdragon 720G", &[6, 2]),
    ("sm7150", "Qualcomm Snapdragon 730", &[6, 2]),
    ("sm8150ac", "Qualcomm Snapdragon 855+", &[4, 3, 1]),
    ("sm8350", "Qualcomm Snapdragon 888", &[4, 3, 1]),
    ("t8103", "Apple M1", &[4, 4]),
    ("zuma", "Google Tensor G3", &[4, 4, 1]),
];
/// A level whose rate is farther from its clock's share than this did not run at that clock.
const OFF_CLOCK: f64 = 0.03;
/// A measured power may be off by this at least, in per cent: what "measured" stands for.
const LEAST_RANGE: f64 = 5.0;
/// And at most: what a range may say.
const MOST_RANGE: f64 = 90.0;
/// Draws within so many standard deviations are 19 of 20.
const MOST: f64 = 1.96;
/// The share of a core's lowest busy power that it is taken to draw when it waits.
const WAITING: f64 = 0.1;

const MADE: &str = "# Made by `cargo xtask machines` from machines/data/freqbench.csv: do not edit.";
const PAGE: &str = "docs/notes/machines.md";
const TABLE: [&str; 2] = ["<!-- made by `cargo xtask machines`: do not edit -->", "<!-- end -->"];

/// Makes the files, or with `check` compares.
pub(crate) fn run(check: bool) -> Result<(), String> {
    let root =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).ok_or("xtask stands in no repository")?;
    let clusters = cluster::read("machines/data/freqbench.csv", data::FREQBENCH.as_bytes())
        .map_err(|e| e.to_string())?;
    let results = server::read("machines/data/specpower.csv", data::SPECPOWER.as_bytes())
        .map_err(|e| e.to_string())?
        .measured;
    let estimator = server::Estimator::of(&results.iter().collect::<Vec<_>>()).ok_or("too few results")?;
    let mut files: Vec<(PathBuf, String)> = vec![(
        root.join("machines/data/server-estimator.toml"),
        format!(
            "# Made by `cargo xtask machines` from machines/data/specpower.csv: do not edit.\n{}",
            estimator.to_toml()
        ),
    )];
    let made = socs(&clusters)?;
    for (name, text) in &made {
        file::parse(text, name).map_err(|e| e.to_string())?;
        files.push((root.join(format!("machines/measured/{name}.toml")), text.clone()));
    }
    let known: BTreeSet<&str> = builtin::measured().collect();
    let new: Vec<&str> = made.keys().map(String::as_str).filter(|n| !known.contains(n)).collect();
    let page_path = root.join(PAGE);
    let page = fs::read_to_string(&page_path).map_err(|e| format!("{PAGE}: {e}"))?;
    files.push((page_path, page_with(&page, &table(&made, &estimator, &results)?)?));

    let mut stale = Vec::new();
    for (path, text) in files {
        if fs::read_to_string(&path).ok().as_deref() == Some(text.as_str()) {
            continue;
        }
        if check {
            stale.push(path.display().to_string());
        } else {
            fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
            println!("wrote {}", path.display());
        }
    }
    if !new.is_empty() {
        return Err(format!("not in crates/model/src/machine/builtin.rs: {}", new.join(", ")));
    }
    match stale.is_empty() {
        true => Ok(()),
        false => Err(format!("differs from the data: {}; run the chore `machines`", stale.join(", "))),
    }
}

/// The page with the made part anew.
fn page_with(page: &str, table: &str) -> Result<String, String> {
    let [from, to] = TABLE;
    let (before, rest) = page.split_once(from).ok_or(format!("{PAGE}: no line `{from}`"))?;
    let (_, after) = rest.split_once(to).ok_or(format!("{PAGE}: no line `{to}`"))?;
    Ok(format!("{before}{from}\n\n{table}\n{to}{after}"))
}

/// A level of a cluster over all runs.
struct RunLevel {
    khz: f64,
    rate: f64,
    watts: Option<f64>,
}

/// A cluster over all runs of its SoC.
struct Merged {
    runs: usize,
    levels: Vec<RunLevel>,
    /// Frequencies whose rate is not theirs, in MHz.
    off_clock: Vec<String>,
    /// How far runs are from each other, in per cent of the watts.
    spread: f64,
}

fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    // Of two values the mean: the lower one alone would be one run's.
    let mut all: Vec<f64> = values.into_iter().collect();
    all.sort_by(f64::total_cmp);
    let n = all.len();
    (n > 0).then(|| (all[(n - 1) / 2] + all[n / 2]) / 2.0)
}

/// Runs of one cluster, level by level. Frequencies within one part in 10,000 are one.
fn merge(runs: &[&Cluster]) -> Merged {
    let mut all: Vec<_> = runs.iter().flat_map(|c| &c.levels).collect();
    all.sort_by(|a, b| a.khz.total_cmp(&b.khz));
    let mut levels = Vec::new();
    let mut off = Vec::new();
    for same in all.chunk_by(|a, b| b.khz < a.khz * 1.0001) {
        let powers: Vec<f64> = same.iter().filter_map(|l| l.watts).collect();
        let watts = median(powers.iter().copied()).filter(|w| *w > 0.0);
        if let (Some(w), true) = (watts, powers.len() > 1) {
            off.extend(powers.iter().map(|p| (p / w - 1.0).abs()));
        }
        let rate = median(same.iter().map(|l| l.rate)).unwrap_or(0.0);
        levels.push(RunLevel { khz: same[0].khz, rate, watts });
    }
    let per_khz = median(levels.iter().map(|l| l.rate / l.khz)).unwrap_or(1.0);
    let is_off = |l: &RunLevel| (l.rate / l.khz / per_khz - 1.0).abs() > OFF_CLOCK;
    let off_clock = levels.iter().filter(|l| is_off(l)).map(|l| mhz(l.khz)).collect();
    levels.retain(|l| !is_off(l));
    let sd = (off.iter().map(|o| o * o).sum::<f64>() / off.len().max(1) as f64).sqrt();
    let spread = (MOST * sd * 100.0).clamp(LEAST_RANGE, MOST_RANGE).round();
    Merged { runs: runs.len(), levels, off_clock, spread }
}

fn mhz(khz: f64) -> String {
    format!("{:?}", (khz / 1e3 * 10.0).round() / 10.0)
}

/// The nearest powers that never fall as the clock rises (pool adjacent violators): a machine file takes no others.
fn rising(watts: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for &w in watts {
        let mut pool = (w, 1);
        while let Some(&(mean, n)) = pools.last().filter(|(mean, _)| *mean > pool.0) {
            pools.pop();
            pool = ((mean * n as f64 + pool.0 * pool.1 as f64) / (n + pool.1) as f64, n + pool.1);
        }
        pools.push(pool);
    }
    pools.into_iter().flat_map(|(mean, n)| std::iter::repeat_n(mean, n)).collect()
}

/// Watts at the two ends by rate, over all clusters with power: a straight line in logarithms for each end.
fn ends_by_rate(clusters: &[Cluster]) -> Result<[Vec<f64>; 2], String> {
    let ends: Vec<Ends> = clusters.iter().map(Cluster::ends).collect();
    let known: Vec<(&Ends, [f64; 2])> = ends.iter().filter_map(|e| Some((e, e.watts?))).collect();
    let weight = vec![1.0; known.len()];
    let line = |end: usize| {
        let x: Vec<f64> = known.iter().flat_map(|(e, _)| [1.0, e.rate[end].ln()]).collect();
        let y: Vec<f64> = known.iter().map(|(_, w)| w[end].ln()).collect();
        ridge::robust(Points { columns: 2, x: &x, y: &y, weight: &weight }, 0.0)
            .ok_or("no power at the ends of any cluster".to_owned())
    };
    Ok([line(0)?, line(1)?])
}

/// A machine file for each SoC, by name.
fn socs(clusters: &[Cluster]) -> Result<BTreeMap<String, String>, String> {
    let fit = cluster::Estimator::of(&clusters.iter().collect::<Vec<_>>()).ok_or("too few SoCs")?;
    let by_rate = ends_by_rate(clusters)?;
    let names: BTreeSet<&str> = clusters.iter().map(|c| c.soc.as_str()).collect();
    let mut out = BTreeMap::new();
    for name in names {
        let (_, title, cores) = CORES
            .iter()
            .find(|(n, ..)| *n == name)
            .ok_or(format!("{name}: its cores are not in the table CORES"))?;
        let own: Vec<&Cluster> = clusters.iter().filter(|c| c.soc == name).collect();
        let cpus: BTreeSet<u32> = own.iter().map(|c| c.cpu).collect();
        if cpus.len() != cores.len() {
            return Err(format!("{name}: {} clusters measured, {} in the table", cpus.len(), cores.len()));
        }
        let of = |cpu: &u32| merge(&own.iter().filter(|c| c.cpu == *cpu).copied().collect::<Vec<_>>());
        let merged: Vec<Merged> = cpus.iter().map(of).collect();
        let idle: Vec<f64> = own.iter().filter_map(|c| c.idle_w).filter(|w| *w > 0.0).collect();
        out.insert(name.to_owned(), soc(name, title, cores, &merged, &idle, &fit, &by_rate));
    }
    Ok(out)
}

/// A machine file.
fn soc(
    name: &str,
    title: &str,
    cores: &[usize],
    clusters: &[Merged],
    idle: &[f64],
    fit: &cluster::Estimator,
    by_rate: &[Vec<f64>; 2],
) -> String {
    let runs = clusters.iter().map(|c| c.runs).max().unwrap_or(0);
    let total: usize = cores.iter().sum();
    let per_mhz = |c: &Merged| c.levels.last().map_or(0.0, |l| l.rate / (l.khz / 1e3));
    let reference = clusters.iter().map(per_mhz).fold(0.0, f64::max);
    let mut out = format!(
        "{MADE}\nname = \"{name}\"\nsummary = \"{title}, {total} cores: CoreMark on one core at every frequency (freqbench)\"\n\n\
         [topology]\npackages = 1\nclocks = \"kind\"\nsource = \"{title}: the vendor's product page\"\nconfidence = \"datasheet\"\n"
    );
    let mut first = 0;
    for (c, n) in clusters.iter().zip(cores) {
        kind(&mut out, c, first, *n, per_mhz(c) / reference, fit, by_rate);
        first += n;
    }
    out += "\n[package]\nuncore_w = 0.0\n\
            source = \"counted elsewhere: what is always on in the idle platform, what one busy core wakes in its own watts\"\n\
            confidence = \"guess\"\n";
    let (watts, source, confidence, range) = match median(idle.iter().copied()) {
        Some(w) => {
            let off = idle.iter().map(|i| (i / w - 1.0).abs() * 100.0).fold(LEAST_RANGE, f64::max);
            (
                w,
                format!("freqbench: the idle machine's mean power, median of {runs} runs"),
                "measured",
                off.ceil(),
            )
        }
        None => (
            1.0,
            "not measured: a phone or small board at rest with its screen off".to_owned(),
            "guess",
            80.0,
        ),
    };
    _ = write!(
        out,
        "\n[platform]\nwatts = {}\nsystem = \"linux\"\ndefault_policy = \"schedutil\"\nsource = \"{source}\"\n\
         confidence = \"{confidence}\"\nrange = \"+-{:.0}%\"\n\
         sources.default_policy = {{ source = \"Linux: the default governor of Arm kernels; vendors tune it\", confidence = \"guess\" }}\n",
        four(watts),
        range.min(MOST_RANGE)
    );
    out
}

/// A kind of core: a cluster.
fn kind(
    out: &mut String,
    c: &Merged,
    first: usize,
    cores: usize,
    ipc: f64,
    fit: &cluster::Estimator,
    by_rate: &[Vec<f64>; 2],
) {
    let measured: Option<Vec<f64>> = c.levels.iter().map(|l| l.watts).collect();
    let (watts, source, standing) = match &measured {
        Some(w) => {
            let level = rising(w);
            let moved = level.iter().zip(w).any(|(a, b)| a != b);
            let note = if moved { "; where a slower one drew more, the mean of both" } else { "" };
            let source = format!(
                "freqbench (kdrag0n), CoreMark on one core, power above the idle machine's, median of {} run{}{note}",
                c.runs,
                if c.runs == 1 { "" } else { "s" }
            );
            (level, source, format!("confidence = \"measured\"\nrange = \"+-{:.0}%\"", c.spread))
        }
        None => {
            let rate = [c.levels[0].rate, c.levels[c.levels.len() - 1].rate];
            let at = |end: usize| ridge::dot(&[1.0, rate[end].ln()], &by_rate[end]).exp();
            let khz = c.levels.iter().map(|l| l.khz).collect();
            let told = fit.predict(&Ends { khz, rate, watts: Some([at(0), at(1)]) });
            let level = rising(&told.watts.unwrap_or_default().iter().map(|w| w.median).collect::<Vec<_>>());
            let source = "not measured: what the other SoCs' clusters draw at such a rate, bent as theirs do";
            (level, source.to_owned(), "confidence = \"guess\"\nrange = \"+-90%\"".to_owned())
        }
    };
    let list = |of: Vec<String>| of.into_iter().rev().collect::<Vec<_>>().join(", ");
    let exact = if (ipc - 1.0).abs() < 1e-12 { "1.0".to_owned() } else { four(ipc) };
    _ = write!(
        out,
        "\n[[kind]]\nname = \"cluster{first}\"\ncores = {cores}\nipc = {exact}\n\
         source = \"freqbench: CoreMark a second and MHz, of the quickest cluster's\"\nconfidence = \"measured\"\n\
         sources.cores = {{ source = \"the vendor's product page\", confidence = \"datasheet\" }}\n"
    );
    if !c.off_clock.is_empty() {
        _ = write!(out, "\n# Left out, since the rate was not the clock's: {} MHz.", c.off_clock.join(", "));
    }
    let lowest = watts.first().copied().unwrap_or(0.0);
    _ = write!(
        out,
        "\n[kind.speeds]\nmhz = [{}]\nbusy_w = [{}]\nsource = \"{source}\"\n{standing}\n\
         sources.mhz = {{ source = \"freqbench: the kernel's frequency table\", confidence = \"kernel-table\" }}\n\
         \n[kind.transition]\nstall_us = 20\nsource = \"not measured: some tens of microseconds on SoCs of these years\"\n\
         confidence = \"guess\"\nrange = \"+-90%\"\n\
         \n[kind.idle]\nstates = [\n  {{ name = \"WFI\", latency_us = 1, target_us = 1, watts = {} }},\n  \
         {{ name = \"CPU-off\", latency_us = 500, target_us = 2000, watts = 0.0 }},\n]\n\
         source = \"not measured: the two states that Arm firmware (PSCI) usually has; waiting, a tenth of the lowest busy power above the idle machine's\"\n\
         confidence = \"guess\"\nrange = \"+-90%\"\n",
        list(c.levels.iter().map(|l| mhz(l.khz)).collect()),
        list(watts.iter().map(|w| four(*w)).collect()),
        four(lowest * WAITING),
    );
}

/// A figure to four digits, as TOML has it.
fn four(v: f64) -> String {
    let rounded: f64 = format!("{v:.3e}").parse().unwrap_or(v);
    format!("{rounded:?}")
}

/// What a model's busy watts rest on.
fn standing(m: &MachineModel) -> &'static str {
    let power = |what: &str| what.ends_with(".busy_w") || what.ends_with(".capacitance_nf");
    let words: Vec<&str> = m
        .figures()
        .iter()
        .filter(|f| power(&f.what))
        .map(|f| m.provenance[f.origin].confidence.word())
        .collect();
    match () {
        () if words.is_empty() => "by definition",
        () if words.iter().all(|w| *w == "measured") => "measured",
        () if words.iter().all(|w| *w == "guess") => "guess",
        () => "estimated",
    }
}

/// The table of all models, and of the servers beside what was measured.
fn table(
    made: &BTreeMap<String, String>,
    estimator: &server::Estimator,
    results: &[MeasuredServer],
) -> Result<String, String> {
    let parse = |name: &str, text: &str| file::parse(text, name).map_err(|e| e.to_string());
    let mut machines = Vec::new();
    for name in builtin::written() {
        machines.push(parse(name, builtin::text(name).unwrap_or_default())?);
    }
    for (name, text) in made {
        machines.push(parse(name, text)?);
    }
    let mut out = String::from(
        "| model | busy watts | figures | from tables | measured | fitted | guess | at rest, all busy |\n|---|---|---|---|---|---|---|---|\n",
    );
    for m in &machines {
        let words: Vec<&str> = m.figures().iter().map(|f| m.provenance[f.origin].confidence.word()).collect();
        let of = |w: &[&str]| words.iter().filter(|x| w.contains(x)).count();
        let (rest, full) = m.rest_and_full_w();
        _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {rest:.1} W, {full:.1} W |",
            m.name,
            standing(m),
            words.len(),
            of(&["datasheet", "device-tree", "kernel-table"]),
            of(&["measured"]),
            of(&["fitted"]),
            of(&["guess"])
        );
    }
    out += "\nServers beside the estimator and, where there is one, the result of the same processor:\n\n\
            | server | active idle | 100 % |\n|---|---|---|\n";
    for (name, part, years) in [
        ("xeon-4210", "Silver 4210", [2019.0, 64.0]),
        ("sapphire-rapids-server", "Platinum 8480+", [2023.0, 256.0]),
    ] {
        let Some(m) = machines.iter().find(|m| m.name == name) else { continue };
        let (rest, full) = m.rest_and_full_w();
        _ = writeln!(out, "| {name}, the model | {rest:.0} W | {full:.0} W |");
        let [year, memory_gb] = years;
        let server = Server {
            cpu: format!("Intel Xeon {part}"),
            chips: m.packages.len() as f64,
            cores: m.cores.len() as f64,
            threads: m.cpus.len() as f64,
            mhz: f64::from(m.kinds[0].base_khz) / 1e3,
            memory_gb,
            year,
            design_w: None,
        };
        let told = |s: &Server| {
            let watts = estimator.watts(s);
            let cell = |w: Watts| format!("{:.0} W ({:.0} to {:.0})", w.median, w.low, w.high);
            format!("{} | {}", cell(watts[10]), cell(watts[0]))
        };
        _ = writeln!(out, "| estimated, {memory_gb} GB | {} |", told(&server));
        for r in results.iter().filter(|r| r.server.cpu.contains(part)) {
            let w = |load: usize| r.watts[load].map_or("-".into(), |w| format!("{w:.0} W"));
            let s = &r.server;
            _ = writeln!(
                out,
                "| measured, {} GB, {} threads | {} | {} |",
                s.memory_gb,
                s.threads,
                w(10),
                w(0)
            );
            _ = writeln!(out, "| estimated for that one | {} |", told(s));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_made_to_rise_as_little_as_needed() {
        assert_eq!(rising(&[1.0, 3.0, 2.0, 4.0]), [1.0, 2.5, 2.5, 4.0]);
        assert_eq!(rising(&[3.0, 2.0, 1.0]), [2.0, 2.0, 2.0]);
        assert_eq!(rising(&[]), Vec::<f64>::new());
    }

    #[test]
    fn only_the_made_part_of_the_page_changes() {
        let page = format!("a\n{}\nold\n{}\nb\n", TABLE[0], TABLE[1]);
        let new = page_with(&page, "new\n").unwrap_or_default();
        assert!(
            new.starts_with("a\n")
                && new.ends_with("\nb\n")
                && new.contains("\nnew\n")
                && !new.contains("old")
        );
        assert_eq!(page_with(&new, "new\n"), Ok(new.clone()));
        assert!(page_with("nothing", "new").is_err());
    }
}
