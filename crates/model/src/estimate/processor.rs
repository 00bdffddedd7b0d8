//! What a processor's name tells: of which family it is, of which line, and whether it is a low-power part.
//!
//! Sources: the vendors' naming rules (Intel: Xeon numbers since 2006; AMD: Opteron model numbers, EPYC's last digit is the
//! generation).

/// Designs that share how power goes with load. The years are those of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessorLine {
    /// Intel up to Westmere (2010).
    IntelEarly,
    /// Intel since Sandy Bridge (2011): bus, memory and PCI Express in one package that can sleep.
    IntelLate,
    /// AMD up to the Opterons' last (2012).
    AmdEarly,
    /// AMD's EPYC and what is of its design (2017).
    AmdZen,
}

/// What a name tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processor {
    /// Whose fits are left out together: `Xeon 56xx`, `Xeon E5 v3`, `Xeon Scalable 2`, `EPYC 3`. The name itself where it
    /// follows no known rule.
    pub family: String,
    /// Its line; by the year where the name does not tell.
    pub line: ProcessorLine,
    /// Sold as a part of less power: Intel's L, AMD's HE and EE.
    pub low_power: bool,
}

impl Processor {
    /// Whether it is for machines of one socket and a desktop's size: Xeon 3xxx, E3 and E-2xxx, Core.
    pub fn is_entry(&self) -> bool {
        let series = ["Xeon E3 ", "Xeon E-", "Core "];
        let hundreds = self.family.strip_prefix("Xeon 3").is_some_and(|rest| rest.ends_with("xx"));
        hundreds || series.into_iter().any(|s| self.family.starts_with(s))
    }
}

/// Intel servers of this year are of the later line where nothing else tells.
const INTEL_LATE: f64 = 2012.0;
/// AMD's likewise.
const AMD_ZEN: f64 = 2017.0;

/// Reads a name as the operating system or a result page has it; `year` is when the system was sold.
pub fn read(name: &str, year: f64) -> Processor {
    let plain = name.to_ascii_lowercase().replace("(r)", " ").replace("(tm)", " ");
    let words: Vec<&str> = plain
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.'))
        .filter(|w| !w.is_empty())
        .collect();
    let known = words.iter().enumerate().find_map(|(at, w)| word(w, &words, at));
    let (family, line) = known.unwrap_or_else(|| {
        let amd = words.contains(&"amd");
        let line = match (amd, year) {
            (true, y) if y >= AMD_ZEN => ProcessorLine::AmdZen,
            (true, _) => ProcessorLine::AmdEarly,
            (false, y) if y >= INTEL_LATE => ProcessorLine::IntelLate,
            (false, _) => ProcessorLine::IntelEarly,
        };
        (words.join(" "), line)
    });
    Processor { family, line, low_power: words.iter().any(|w| is_low_power(w)) }
}

/// Whether a name is a server processor's.
pub fn is_server(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["xeon", "epyc", "opteron"].into_iter().any(|line| name.contains(line))
}

/// Whether a name is of AMD's.
pub fn is_amd(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["amd", "epyc", "ryzen", "threadripper", "opteron"].into_iter().any(|line| name.contains(line))
}

/// Digits at the start of a word, and the rest.
fn digits(word: &str) -> (&str, &str) {
    word.split_at(word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len()))
}

/// Family and line, where this word tells them.
fn word(word: &str, words: &[&str], at: usize) -> Option<(String, ProcessorLine)> {
    let has = |w: &str| words.contains(&w);
    let (number, suffix) = digits(word);
    let four = number.len() == 4;
    if has("epyc") || has("ryzen") || has("threadripper") {
        // Four signs, the first and the last of them digits: 7763, 7F72, 9654P.
        let model = word.starts_with(|c: char| c.is_ascii_digit()) && !word.contains(['.', '-']);
        let generation = word.chars().nth(3).filter(|c| model && c.is_ascii_digit())?;
        return Some((format!("EPYC {generation}"), ProcessorLine::AmdZen));
    }
    if has("opteron") {
        return four.then(|| (format!("Opteron {}xxx", &number[..1]), ProcessorLine::AmdEarly));
    }
    if let Some((series @ ("e3" | "e5" | "e7"), model)) = word.split_once('-') {
        let (number, rest) = digits(model);
        let version = rest.rsplit_once('v').map(|(_, v)| v).or_else(|| words.get(at + 1)?.strip_prefix('v'));
        let version = version.filter(|v| v.len() == 1 && *v != "1").unwrap_or("1");
        // The first E7 is a Westmere.
        let line = if series == "e7" && version == "1" {
            ProcessorLine::IntelEarly
        } else {
            ProcessorLine::IntelLate
        };
        return (number.len() == 4).then(|| (format!("Xeon {} v{version}", series.to_uppercase()), line));
    }
    if let Some((series @ ("e" | "d" | "w"), model)) = word.split_once('-') {
        let (number, _) = digits(model);
        return (number.len() >= 4).then(|| {
            (format!("Xeon {}-{}xxx", series.to_uppercase(), &number[..1]), ProcessorLine::IntelLate)
        });
    }
    if let Some(("i3" | "i5" | "i7" | "i9", model)) = word.split_once('-') {
        let (number, _) = digits(model);
        let line = if number.len() >= 4 { ProcessorLine::IntelLate } else { ProcessorLine::IntelEarly };
        let generation = number.len().checked_sub(3)?;
        let generation = if generation == 0 { "1" } else { &number[..generation] };
        return Some((format!("Core {generation}"), line));
    }
    if ["platinum", "gold", "silver", "bronze"].into_iter().any(has) {
        return four.then(|| (format!("Xeon Scalable {}", &number[1..2]), ProcessorLine::IntelLate));
    }
    let (number, suffix) = match word.strip_prefix(['l', 'e', 'x', 'w']) {
        Some(rest) => digits(rest),
        None => (number, suffix),
    };
    (number.len() == 4 && (suffix.is_empty() || suffix == "m") && !has("amd"))
        .then(|| (format!("Xeon {}xx", &number[..2]), ProcessorLine::IntelEarly))
}

/// `l5430`, `e3-1260l`, `e3-1265lv3`, `2376he`, `ee`.
fn is_low_power(word: &str) -> bool {
    if let Some(("e3" | "e5" | "e7", model)) = word.split_once('-') {
        return digits(model).1.starts_with('l');
    }
    let (number, suffix) = digits(word);
    let l = word.strip_prefix('l').map(digits);
    l.is_some_and(|(n, rest)| n.len() == 4 && rest.is_empty())
        || (matches!(suffix, "he" | "ee") && matches!(number.len(), 0 | 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_parts_are_told_by_their_series() {
        for (name, entry) in [
            ("Intel Xeon X3360", true),
            ("Intel Xeon E3-1260L v5", true),
            ("Intel Xeon E-2388G", true),
            ("Intel Core i5-7500", true),
            ("Intel Xeon E5-2660", false),
            ("Intel Xeon Silver 4310", false),
            ("Intel Xeon X5570", false),
            ("AMD EPYC 7313", false),
        ] {
            assert_eq!(read(name, 2012.0).is_entry(), entry, "{name}");
        }
    }

    #[test]
    fn names_as_systems_and_results_have_them() {
        use ProcessorLine::*;
        for (name, family, line, low) in [
            ("Intel Xeon X5670", "Xeon 56xx", IntelEarly, false),
            ("Intel Xeon processor L5335", "Xeon 53xx", IntelEarly, true),
            ("Intel Xeon Processor 7110M", "Xeon 71xx", IntelEarly, false),
            ("Xeon L5420", "Xeon 54xx", IntelEarly, true),
            ("Intel(R) Xeon(R) CPU E5472", "Xeon 54xx", IntelEarly, false),
            (
                "Intel Xeon E5-2660 2.2 GHz (Intel Turbo Boost Technology up to 3.00 GHz)",
                "Xeon E5 v1",
                IntelLate,
                false,
            ),
            ("Intel Xeon E5-2650L", "Xeon E5 v1", IntelLate, true),
            ("Intel Xeon E5-2699 v3 2.30 GHz", "Xeon E5 v3", IntelLate, false),
            ("Intel Xeon E3-1265LV3", "Xeon E3 v3", IntelLate, true),
            (
                "Intel Xeon E3-1220v2 (Intel Turbo Boost Technology up to 3.50 GHz)",
                "Xeon E3 v2",
                IntelLate,
                false,
            ),
            ("Intel E3-1260L v5", "Xeon E3 v5", IntelLate, true),
            ("Intel Xeon E7-4870", "Xeon E7 v1", IntelEarly, false),
            (
                "Intel Xeon E-2388G (Intel Turbo Boost Technology up to 5.1GHz)",
                "Xeon E-2xxx",
                IntelLate,
                false,
            ),
            ("Intel Xeon D-1541", "Xeon D-1xxx", IntelLate, false),
            ("Intel(R) Xeon(R) Silver 4210 CPU @ 2.20GHz", "Xeon Scalable 2", IntelLate, false),
            ("Intel Xeon Platinum 8276L CPU 2.20 GHz", "Xeon Scalable 2", IntelLate, false),
            ("Intel(R) Core(TM) i5-650", "Core 1", IntelEarly, false),
            ("Intel(R) Core(TM) i7-4510U CPU @ 2.00GHz", "Core 4", IntelLate, false),
            ("AMD EPYC 7763 2.45GHz", "EPYC 3", AmdZen, false),
            ("AMD EPYC 7F72", "EPYC 2", AmdZen, false),
            ("AMD EPYC 9654P 96-Core Processor", "EPYC 4", AmdZen, false),
            ("2.6 GHz AMD Opteron 2435", "Opteron 2xxx", AmdEarly, false),
            ("Quad-Core AMD Opteron(r) Processor 8376 HE", "Opteron 8xxx", AmdEarly, true),
            ("AMD Opteron 2376HE", "Opteron 2xxx", AmdEarly, true),
            ("Intel Pentium D Processor 930", "intel pentium d processor 930", IntelEarly, false),
        ] {
            let told = read(name, 2008.0);
            assert_eq!(told, Processor { family: family.into(), line, low_power: low }, "{name}");
        }
    }

    #[test]
    fn the_year_tells_where_the_name_does_not() {
        assert_eq!(read("Some CPU", 2020.0).line, ProcessorLine::IntelLate);
        assert_eq!(read("AMD something", 2020.0).line, ProcessorLine::AmdZen);
        assert_eq!(read("", 2007.0).line, ProcessorLine::IntelEarly);
        assert_eq!(read("é€-\u{1b} e5- epyc 7\u{20ac}", f64::NAN).line, ProcessorLine::IntelEarly);
    }
}
