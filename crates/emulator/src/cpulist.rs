//! Sets of CPUs in the three forms that the kernel writes.

/// `0-3,8`; nothing for an empty set (lib/vsprintf.c, `%*pbl`).
pub(crate) fn list(cpus: &[u32]) -> String {
    let mut out = String::new();
    let mut i = 0;
    while let Some(&first) = cpus.get(i) {
        let mut last = first;
        while cpus.get(i + 1) == Some(&(last + 1)) {
            i += 1;
            last += 1;
        }
        if !out.is_empty() {
            out.push(',');
        }
        out += &if first == last { first.to_string() } else { format!("{first}-{last}") };
        i += 1;
    }
    out
}

/// Groups of 32 bits in hexadecimal, highest first, as wide as `width` CPUs (`%*pb`).
pub(crate) fn mask(cpus: &[u32], width: u32) -> String {
    let mut words = vec![0_u32; width.max(1).div_ceil(32) as usize];
    for &cpu in cpus {
        if let Some(word) = words.get_mut(cpu as usize / 32) {
            *word |= 1 << (cpu % 32);
        }
    }
    let top = ((width.max(1) - 1) % 32 / 4 + 1) as usize;
    let mut out = String::new();
    for (i, word) in words.iter().rev().enumerate() {
        out += &if i == 0 { format!("{word:0top$x}") } else { format!(",{word:08x}") };
    }
    out
}

/// `0 1 2`, as cpufreq writes its CPUs.
pub(crate) fn words(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

/// Reads `0-3,8` or `0 1 2`. Anything else, and numbers past any machine's, ends the set.
pub(crate) fn parse(text: &str) -> Vec<u32> {
    const MOST: u32 = 8192;
    let mut cpus = Vec::new();
    for part in text.split([',', ' ', '\n', '\t']).filter(|p| !p.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else { break };
        if first <= last && last < MOST {
            cpus.extend(first..=last);
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        assert_eq!(list(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!(list(&[]), "");
        assert_eq!(mask(&[0, 1], 2), "3");
        assert_eq!(mask(&[0], 64), "00000000,00000001");
        assert_eq!(mask(&[35], 36), "8,00000000");
        assert_eq!(words(&[0, 2]), "0 2");
        assert_eq!(parse("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(parse("0 2"), [0, 2]);
        assert_eq!(parse("3-1,x"), [0_u32; 0]);
    }
}
