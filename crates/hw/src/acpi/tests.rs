use crate::acpi::*;
use crate::root::DirRoot;
use std::path::Path;

/// A little assembler: byte code of the forms that firmware uses.
mod asm {
    pub(super) fn length(inside: &[u8]) -> Vec<u8> {
        let n = inside.len();
        let mut out = match n {
            0..=62 => vec![n as u8 + 1],
            63..=4093 => vec![0x40 | ((n + 2) & 0xf) as u8, ((n + 2) >> 4) as u8],
            _ => vec![0x80 | ((n + 3) & 0xf) as u8, ((n + 3) >> 4) as u8, ((n + 3) >> 12) as u8],
        };
        out.extend_from_slice(inside);
        out
    }

    pub(super) fn integer(value: u64) -> Vec<u8> {
        let bytes = value.to_le_bytes();
        match value {
            0 => vec![0x00],
            1 => vec![0x01],
            u64::MAX => vec![0xff],
            2..=0xff => vec![0x0a, bytes[0]],
            0x100..=0xffff => [&[0x0b], &bytes[..2]].concat(),
            0x1_0000..=0xffff_ffff => [&[0x0c], &bytes[..4]].concat(),
            _ => [&[0x0e], &bytes[..]].concat(),
        }
    }

    pub(super) fn package(elements: &[Vec<u8>]) -> Vec<u8> {
        let inside = [vec![elements.len() as u8], elements.concat()].concat();
        [vec![0x12], length(&inside)].concat()
    }

    pub(super) fn var_package(elements: &[Vec<u8>]) -> Vec<u8> {
        let inside = [integer(elements.len() as u64), elements.concat()].concat();
        [vec![0x13], length(&inside)].concat()
    }

    pub(super) fn row(values: &[u64]) -> Vec<u8> {
        package(&values.iter().map(|v| integer(*v)).collect::<Vec<_>>())
    }

    /// `\_PR.CPU0`, `^A___`, and so on, written out.
    pub(super) fn name(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let rest = text.trim_start_matches(['\\', '^']);
        out.extend_from_slice(&text.as_bytes()[..text.len() - rest.len()]);
        let segments: Vec<&str> = rest.split('.').filter(|s| !s.is_empty()).collect();
        match segments.len() {
            0 => out.push(0),
            1 => {}
            2 => out.push(0x2e),
            n => out.extend([0x2f, n as u8]),
        }
        segments.iter().for_each(|s| out.extend(format!("{s:_<4}").bytes()));
        out
    }

    pub(super) fn named(n: &str, value: Vec<u8>) -> Vec<u8> {
        [vec![0x08], name(n), value].concat()
    }

    pub(super) fn scope(n: &str, inside: Vec<u8>) -> Vec<u8> {
        [vec![0x10], length(&[name(n), inside].concat())].concat()
    }

    pub(super) fn device(n: &str, inside: Vec<u8>) -> Vec<u8> {
        [vec![0x5b, 0x82], length(&[name(n), inside].concat())].concat()
    }

    pub(super) fn processor(n: &str, id: u8, inside: Vec<u8>) -> Vec<u8> {
        [vec![0x5b, 0x83], length(&[name(n), vec![id, 0x10, 4, 0, 0, 6], inside].concat())].concat()
    }

    pub(super) fn method(n: &str, body: Vec<u8>) -> Vec<u8> {
        [vec![0x14], length(&[name(n), vec![0], body].concat())].concat()
    }

    pub(super) fn returns(value: Vec<u8>) -> Vec<u8> {
        [vec![0xa4], value].concat()
    }

    pub(super) fn table(signature: &str, body: Vec<u8>) -> Vec<u8> {
        let mut out = signature.as_bytes().to_vec();
        out.extend((36 + body.len() as u32).to_le_bytes());
        out.extend([2, 0]);
        out.extend(b"WATTW TEST    \x01\0\0\0ASM \x01\0\0\0".iter().take(26));
        out.resize(36, 0);
        out.extend(body);
        let sum = out.iter().fold(0u8, |s, b| s.wrapping_add(*b));
        out[9] = 0u8.wrapping_sub(sum);
        out
    }
}
use asm::*;

fn one(body: Vec<u8>) -> Acpi {
    parse(&[("SSDT1".to_owned(), table("SSDT", body))])
}

fn rows() -> Vec<Vec<u8>> {
    vec![row(&[2501, 35000, 10, 10, 0x2000, 0x2000]), row(&[800, 9000, 10, 10, 0x0800, 0x0800])]
}

fn fixture(name: &str) -> (String, Vec<u8>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acpi").join(name);
    (name.to_owned(), std::fs::read(path).unwrap())
}

#[track_caller]
fn fault(acpi: &Acpi) -> String {
    assert_eq!(acpi.faults.len(), 1, "{acpi:?}");
    let words = acpi.faults[0].to_string();
    assert!(!words.contains('\n'), "{words}");
    words
}

#[test]
fn a_list_is_found_wherever_firmware_puts_it() {
    let pss = || named("_PSS", package(&rows()));
    for (body, path) in [
        (scope("\\_PR.CPU0", pss()), "\\_PR.CPU0"),
        (scope("\\_PR", processor("CPU0", 3, pss())), "\\_PR.CPU0"),
        (scope("\\_SB", device("C000", pss())), "\\_SB.C000"),
        (device("\\_SB.SCK0.C001", pss()), "\\_SB.SCK0.C001"),
        (scope("\\_SB", device("SCK0", scope("^C002", pss()))), "\\_SB.C002"),
        (named("\\_PR.CPU1._PSS", package(&rows())), "\\_PR.CPU1"),
        (scope("\\", device("C003", named("_PSS", var_package(&rows())))), "\\C003"),
    ] {
        let acpi = one(body);
        assert_eq!(acpi.faults, [], "{path}");
        assert_eq!(acpi.processors.len(), 1, "{path}");
        let processor = &acpi.processors[0];
        assert_eq!(processor.path, path);
        let list = processor.pss.as_ref().unwrap();
        assert_eq!((list.states.len(), list.table.as_str()), (2, "SSDT1"));
        let first = PssState {
            mhz: 2501,
            power_mw: 35000,
            latency_us: 10,
            bus_master_latency_us: 10,
            control: 0x2000,
            status: 0x2000,
        };
        assert_eq!(list.states[0], first);
        assert_eq!(processor.acpi_id, (path == "\\_PR.CPU0" && processor.acpi_id.is_some()).then_some(3));
    }
}

#[test]
fn a_method_s_lists_are_followed_and_the_longest_is_taken() {
    let longer = [rows(), vec![row(&[600, 6000, 10, 10, 0x600, 0x600])]].concat();
    let choose = [
        // If (LEqual (Local0, One)) { Return (TPSS) }
        vec![0xa0],
        length(&[vec![0x93, 0x60, 0x01], returns(name("TPSS"))].concat()),
        returns(name("LPSS")),
    ]
    .concat();
    let acpi = one([
        scope(
            "\\_PR.CPU0",
            [named("LPSS", package(&rows())), named("TPSS", package(&longer)), method("_PSS", choose)]
                .concat(),
        ),
        // Another CPU, by the first one's method, by an alias, and by a name in a scope above.
        scope("\\_PR.CPU1", method("_PSS", returns(name("\\_PR.CPU0._PSS")))),
        scope("\\_PR.CPU2", [vec![0x06], name("\\_PR.CPU0._PSS"), name("_PSS")].concat()),
        named("\\_PR.SPSS", package(&rows())),
        scope("\\_PR.CPU3", method("_PSS", returns(name("SPSS")))),
        scope("\\_PR.CPU4", method("_PSS", returns(package(&rows())))),
    ]
    .concat());
    assert_eq!(acpi.faults, []);
    let of = |path: &str| acpi.processors.iter().find(|p| p.path == path).unwrap().pss.as_ref().unwrap();
    for cpu in ["\\_PR.CPU0", "\\_PR.CPU1", "\\_PR.CPU2"] {
        assert_eq!(of(cpu).states.len(), 3, "{cpu}");
        assert_eq!(of(cpu).name, "\\_PR.CPU0.TPSS");
        assert_eq!(of(cpu).others, ["\\_PR.CPU0.LPSS"]);
    }
    assert_eq!(of("\\_PR.CPU3").name, "\\_PR.SPSS");
    assert_eq!(of("\\_PR.CPU4").name, "\\_PR.CPU4._PSS");
    assert!(acpi.summary().contains("3 P-states"), "{}", acpi.summary());
}

#[test]
fn lists_without_a_pss_are_taken_as_004_took_them() {
    for n in ["LPSS", "TPSS", "SPSS"] {
        let acpi = one(scope("\\_PR.CPU0", named(n, package(&rows()))));
        let list = acpi.processors[0].pss.as_ref().unwrap();
        assert_eq!(list.name, format!("\\_PR.CPU0.{n}"));
    }
}

#[test]
fn entries_never_filled_in_are_left_out_and_counted() {
    let unfilled = row(&[0x8000_0000; 6]);
    let acpi = one(scope(
        "\\_PR.CPU0",
        named("_PSS", package(&[rows(), vec![unfilled.clone(), unfilled]].concat())),
    ));
    let list = acpi.processors[0].pss.as_ref().unwrap();
    assert_eq!((list.states.len(), list.unfilled), (2, 2));
}

#[test]
fn circles_end() {
    let acpi = one([
        scope("\\_PR.CPU0", method("_PSS", returns(name("\\_PR.CPU1._PSS")))),
        scope("\\_PR.CPU1", method("_PSS", returns(name("\\_PR.CPU0._PSS")))),
    ]
    .concat());
    assert!(acpi.processors.is_empty() && acpi.faults.is_empty());
}

#[test]
fn headers_are_checked() {
    let good = table("SSDT", scope("\\_PR.CPU0", named("_PSS", package(&rows()))));
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        fault(&parse(&[("SSDT9".to_owned(), bytes)]))
    };
    let words = with(&|b| b.truncate(20));
    assert_eq!(words, "ACPI table SSDT9: offset 0x0: 20 bytes, where the header alone has 36");
    let words = with(&|b| b.truncate(60));
    assert!(words.contains("offset 0x4: says that it has"), "{words}");
    let words = with(&|b| b[50] ^= 4);
    assert!(words.contains("offset 0x9: checksum"), "{words}");
    let words = with(&|b| b[0] = b'\n');
    assert!(words.contains("signature `\\nSDT`"), "{words}");
    // Bytes after the table's own length do not count.
    let mut longer = good.clone();
    longer.extend([1, 2, 3]);
    assert!(parse(&[("SSDT".to_owned(), longer)]).faults.is_empty());
}

#[test]
fn broken_tables_give_name_and_offset_and_do_not_hide_the_others() {
    // A scope longer than the table.
    let words = fault(&one(vec![0x10, 0x3f, b'_', b'P', b'R', b'_']));
    assert_eq!(words, "ACPI table SSDT1: offset 0x25: a length of 63 bytes where 5 are left");
    // A _PSS whose package holds more than it says.
    let mut pss = named("_PSS", package(&rows()));
    pss[7] = 1;
    let words = fault(&one(scope("\\_PR.CPU0", pss.clone())));
    assert!(words.contains("a package of 1 elements holds more"), "{words}");
    // The same where the walk feels its way.
    let words = fault(&one(scope("\\_PR.CPU0", [vec![0x70, 0x60, 0x61], pss].concat())));
    assert!(words.contains("holds more"), "{words}");
    // Rows of another shape.
    for (bad, why) in [
        (row(&[1, 2, 3, 4, 5]), "entry 1: 5 elements, where 6 were expected"),
        (row(&[1, 2, 3, 4, 5, 1 << 33]), "entry 1: element 5: 0x200000000 has more than 32 bits"),
        (integer(7), "entry 1: expected a package of 6 integers"),
        (package(&vec![name("ABCD"); 6]), "entry 1: element 0 is not an integer"),
    ] {
        let list = [rows()[..1].to_vec(), vec![bad]].concat();
        let words = fault(&one(scope("\\_PR.CPU0", named("_PSS", package(&list)))));
        assert!(words.ends_with(&format!("\\_PR.CPU0._PSS: {why}")), "{words}");
    }
    // Nested beyond all reason.
    let mut deep = named("ABCD", integer(1));
    for _ in 0..200 {
        deep = scope("ABCD", deep);
    }
    let words = fault(&one(deep));
    assert!(words.contains("nested more than 40 deep"), "{words}");
    // A good table beside a bad one.
    let good = table("DSDT", scope("\\_PR.CPU0", named("_PSS", package(&rows()))));
    let acpi = parse(&[("SSDT1".to_owned(), vec![0; 40]), ("DSDT".to_owned(), good)]);
    fault(&acpi);
    assert_eq!(acpi.processors.len(), 1);
}

#[test]
fn every_cut_and_every_flipped_byte_is_survived() {
    for name in ["processor.aml", "pmref.aml", "device.aml"] {
        let (name, bytes) = fixture(name);
        let sealed = |mut b: Vec<u8>| {
            let n = b.len() as u32;
            b[4..8].copy_from_slice(&n.to_le_bytes());
            b[9] = 0;
            b[9] = b.iter().fold(0u8, |s, x| s.wrapping_sub(*x));
            b
        };
        for cut in HEADER..bytes.len() {
            parse(&[(name.clone(), sealed(bytes[..cut].to_vec()))]);
        }
        for at in HEADER..bytes.len() {
            for to in [0x00, 0x10, 0x12, 0x5b, 0xa0, 0xff, bytes[at] ^ 1, bytes[at] ^ 0x80] {
                let mut b = bytes.clone();
                b[at] = to;
                for e in parse(&[(name.clone(), sealed(b))]).faults {
                    assert!(!e.to_string().contains('\n'));
                }
            }
        }
    }
}

/// Tables made to be walked again and again: the walk gives up in time that grows with their length.
#[test]
fn malicious_tables_end() {
    let start = std::time::Instant::now();
    for pattern in [
        &[0x12, 0x3f][..],
        &[0xa0, 0x3f],
        &[0xa1, 0xcf, 0xff, 0xff, 0x0f],
        &[0x70, 0x14, 0x3e, b'A', b'B', b'C', b'D', 0],
        &[0x70, 0xa0, 0x3c, 0x08, b'_', b'P', b'S', b'S'],
        &[0x5b, 0x82, 0x20, b'A', b'B', b'C', b'D', 0xa4, 0x13],
        &[0x0d, b'A'],
    ] {
        let body: Vec<u8> = pattern.iter().copied().cycle().take(1 << 20).collect();
        for fault in one([vec![0x70], body].concat()).faults {
            assert!(!fault.to_string().contains('\n'));
        }
    }
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
    println!("seven tables of 1 MiB: {:?}", start.elapsed());
}

/// Compiled by `iasl -p NAME NAME.asl` of acpica-tools 20200925, both checked in.
#[test]
fn iasl_s_processor_objects() {
    let acpi = parse(&[fixture("processor.aml")]);
    assert_eq!(acpi.faults, []);
    assert_eq!(acpi.processors.len(), 2);
    let cpu0 = &acpi.processors[0];
    assert_eq!((cpu0.path.as_str(), cpu0.acpi_id), ("\\_PR.CPU0", Some(1)));
    let control: Vec<u32> = cpu0.pss.as_ref().unwrap().states.iter().map(|s| s.control).collect();
    assert_eq!(control, [0x1029, 0x0E20, 0x0612]);
    assert_eq!((cpu0.ppc, cpu0.pct), (Some(1), Some(ControlSpace::FixedHardware)));
    assert_eq!(cpu0.psd, Some(Domain { domain: 0, coordination: 0xFC, cpus: 2 }));
    let cst = &cpu0.cst.as_ref().unwrap().states;
    assert_eq!(cst[0], CstState { kind: 1, latency_us: 3, power_mw: 1000, entry: Some((0x7f, 0x10)) });
    assert_eq!(cst[1], CstState { kind: 2, latency_us: 20, power_mw: 500, entry: Some((1, 0x414)) });
    let cpu1 = &acpi.processors[1];
    assert_eq!(cpu1.pss.as_ref().unwrap().name, "\\_PR.CPU0._PSS");
    assert_eq!((cpu1.acpi_id, cpu1.pct), (Some(2), Some(ControlSpace::FixedHardware)));
}

#[test]
fn iasl_s_power_management_ssdt() {
    let acpi = parse(&[fixture("pmref.aml")]);
    assert_eq!(acpi.faults, []);
    let of = |path: &str| acpi.processors.iter().find(|p| p.path == path).unwrap();
    for path in ["\\_PR.CPU0", "\\_PR.CPU1"] {
        let list = of(path).pss.as_ref().unwrap();
        assert_eq!((list.name.as_str(), list.states.len(), list.unfilled), ("\\_PR.CPU0.TPSS", 3, 1));
        assert_eq!(list.others, ["\\_PR.CPU0.LPSS"]);
    }
    let cpu0 = of("\\_PR.CPU0");
    let tss = cpu0.tss.as_ref().unwrap();
    assert_eq!((tss.name.as_str(), tss.states.len()), ("\\_PR.CPU0.TSMF", 3));
    assert_eq!(
        tss.states[2],
        TssState { percent: 50, power_mw: 500, latency_us: 0, control: 0x18, status: 0 }
    );
    assert_eq!(cpu0.tsd, Some(Domain { domain: 0, coordination: 0xFD, cpus: 4 }));
    assert_eq!(cpu0.ppc, Some(0));
}

#[test]
fn iasl_s_processor_devices() {
    let acpi = parse(&[fixture("device.aml")]);
    assert_eq!(acpi.faults, []);
    for processor in &acpi.processors {
        let control: Vec<u32> = processor.pss.as_ref().unwrap().states.iter().map(|s| s.control).collect();
        assert_eq!(control, [0, 1, 2], "{}", processor.path);
    }
    assert_eq!(acpi.processors[0].path, "\\_SB.C000");
    assert_eq!(acpi.processors[1].pct, Some(ControlSpace::Port(0xB2)));
}

#[test]
fn a_tree_with_dynamic_tables_is_read_and_an_empty_one_told() {
    let folder = tempfile::tempdir().unwrap();
    let root = DirRoot::new(folder.path());
    let words = read(&root).unwrap_err().to_string();
    assert!(words.contains("this machine has no ACPI"), "{words}");
    let at = folder.path().join(TABLES);
    std::fs::create_dir_all(at.join("dynamic")).unwrap();
    let empty = read(&root).unwrap();
    assert_eq!(empty.summary(), "none of the ACPI tables could be read");
    std::fs::write(at.join("FACP"), b"not ours").unwrap();
    std::fs::write(at.join("DSDT"), fixture("processor.aml").1).unwrap();
    std::fs::write(at.join("dynamic/SSDT6"), fixture("device.aml").1).unwrap();
    let acpi = read(&root).unwrap();
    assert_eq!(acpi.tables, ["DSDT", "dynamic/SSDT6"]);
    assert_eq!(acpi.processors.len(), 4);
    assert_eq!(acpi.faults, []);
    let node = folder.path().join("sys/devices/system/cpu/cpu7/firmware_node");
    std::fs::create_dir_all(&node).unwrap();
    std::fs::write(node.join("path"), "\\_PR_.CPU1\n").unwrap();
    assert_eq!(acpi.processor_of(&root, 7).unwrap().path, "\\_PR.CPU1");
    assert_eq!(acpi.processor_of(&root, 0), None);
}

/// Virtual machines have tables and no `_PSS`: that is no fault, and said in words.
#[test]
fn this_machine_s_own_tables() {
    match read(&DirRoot::this_machine()) {
        Ok(acpi) => {
            for fault in &acpi.faults {
                assert!(matches!(fault, AcpiError::Unreadable { .. }), "{fault}");
            }
            println!("{}", acpi.summary());
            if acpi.processors.iter().all(|p| p.pss.is_none()) && !acpi.tables.is_empty() {
                assert!(acpi.summary().contains("no _PSS in DSDT"), "{}", acpi.summary());
            }
        }
        Err(e) => println!("{e}"),
    }
}
