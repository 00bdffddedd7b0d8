//! Every register of the files, every one of its 64 bits, on every model that the files name.
//!
//! The truth that the checked path is held against is read from the TOML text here, by a walk of its
//! own over [`toml::Value`]: the loader and the masks under test have no part in it.

use crate::cpus::cpuid::{CpuFacts, Feature, Vendor};
use crate::msr::fake::{FakeMsr, FakeMsrRoot};
use crate::msr::{BUNDLED, MsrChange, MsrDevice, MsrError, Registers, register_toml};
use std::collections::{BTreeMap, BTreeSet};

/// What a register's text says about each bit: may it be written, and is it a log.
#[derive(Default, Debug, Clone)]
struct Truth {
    writable: u64,
    logs: u64,
    hardware: u64,
}

fn list(value: Option<&toml::Value>) -> Vec<String> {
    value
        .and_then(toml::Value::as_array)
        .map(|a| a.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect())
        .unwrap_or_default()
}

fn names_model(groups: &toml::Value, names: &[String], family: u32, model: u32) -> bool {
    names.iter().any(|name| match groups.get(name) {
        Some(group) => names_model(groups, &list(Some(group)), family, model),
        None => *name == format!("{family:X}") || *name == format!("{family:X}.{model:02X}"),
    })
}

/// Address to truth for one CPU.
fn truth(text: &str, cpu: &CpuFacts) -> BTreeMap<u32, Truth> {
    let file: toml::Value = toml::from_str(text).unwrap();
    let none = toml::Value::Table(toml::Table::new());
    let groups = file.get("models").unwrap_or(&none);
    let applies = |t: &toml::Value| {
        let models = list(t.get("models"));
        let has = |f: &String| cpu.surely(Feature::from_name(f).unwrap());
        (t.get("models").is_none() || names_model(groups, &models, cpu.family, cpu.model))
            && !names_model(groups, &list(t.get("except")), cpu.family, cpu.model)
            && list(t.get("needs")).iter().all(has)
            && !list(t.get("unless")).iter().any(has)
    };
    let mut all = BTreeMap::new();
    for register in file["register"].as_array().unwrap() {
        if !applies(register) {
            continue;
        }
        let mut it = Truth::default();
        for field in register["fields"].as_array().unwrap().iter().filter(|f| applies(f)) {
            let bits = field["bits"].as_str().unwrap();
            let (hi, lo) = bits.split_once(':').unwrap_or((bits, bits));
            let (hi, lo): (u32, u32) = (hi.parse().unwrap(), lo.parse().unwrap());
            for bit in lo..=hi {
                let access = field["access"].as_str().unwrap();
                it.logs |= u64::from(access == "rwc0") << bit;
                it.hardware |= u64::from(access != "ro") << bit;
                it.writable |= u64::from(access != "ro" && field.get("refuse").is_none()) << bit;
            }
        }
        all.insert(register["address"].as_integer().unwrap() as u32, it);
    }
    all
}

/// Tries each bit of each register through the checked path, on a machine of its own, and says in
/// words whatever is not as the truth has it. The number of writes tried comes along.
fn audit(registers: &Registers, truth: &BTreeMap<u32, Truth>) -> (Vec<String>, u32) {
    let (mut faults, mut tried) = (Vec::new(), 0);
    let ours: BTreeSet<u32> = registers.iter().map(|r| r.address).collect();
    let theirs: BTreeSet<u32> = truth.keys().copied().collect();
    if ours != theirs {
        faults.push(format!("registers {ours:x?} instead of {theirs:x?}"));
    }
    let root = FakeMsrRoot::new(FakeMsr::new(registers.clone(), [0]));
    let mut device = MsrDevice::for_changing(&root, registers.clone());
    for register in registers.iter() {
        let Some(truth) = truth.get(&register.address) else { continue };
        for bit in 0..64 {
            tried += 1;
            let one = 1u64 << bit;
            let mut fault = |what: &str| faults.push(format!("{} bit {bit}: {what}", register.name));
            // A log starts set and is cleared; any other bit starts clear and is set.
            let before = if truth.logs & one != 0 { truth.logs } else { 0 };
            root.msr().set(0, register.address, before);
            let writes = root.msr().writes().len();
            let result = device.modify(0, register, |raw| Ok(raw ^ one));
            let after = root.msr().read(0, register.address).unwrap();
            match (&result, truth.writable & one != 0) {
                (Ok(change), true) => {
                    if after != before ^ one {
                        fault(&format!("went from {before:#x} to {after:#x}"));
                    }
                    let expected =
                        MsrChange { old: before, asked: before ^ one, got: before ^ one, bits: one };
                    if *change != expected || root.msr().writes().len() != writes + 1 {
                        fault(&format!("reported {change:?}"));
                    }
                }
                (Err(MsrError::Refused(refused)), false) => {
                    if root.msr().writes().len() != writes || after != before {
                        fault("was refused, but the device saw a write");
                    }
                    if refused.to_string().contains('\n') {
                        fault("is refused in more than one line");
                    }
                }
                (result, _) => fault(&format!("writable is {}, but {result:?}", truth.writable & one != 0)),
            }
        }
    }
    (faults, tried)
}

/// The CPUs: every model of a file, with all features, with none, and with each left out in turn.
fn cpus(file: &register_toml::RegisterFile) -> Vec<CpuFacts> {
    let mut all = Vec::new();
    for vendor in file.vendors() {
        let mut models = file.models();
        // One that no file names, for what hangs on features alone.
        models.push((6, 0xFE));
        for (family, model) in models {
            let bare = CpuFacts::of(vendor.clone(), family, model);
            all.push(bare.clone());
            all.push(bare.clone().with(Feature::ALL));
        }
        let (family, model) = file.models()[file.models().len() / 2];
        for out in Feature::ALL {
            let rest: Vec<Feature> = Feature::ALL.iter().copied().filter(|f| f != out).collect();
            all.push(CpuFacts::of(vendor.clone(), family, model).with(&rest));
        }
    }
    all
}

#[test]
fn each_bit_of_each_register_on_each_model() {
    let (mut tried, mut machines) = (0, 0);
    for (name, text) in BUNDLED {
        let file = register_toml::parse(text, name).unwrap();
        for cpu in cpus(&file) {
            let registers = Registers::from_files(std::slice::from_ref(&file), &cpu);
            let (faults, n) = audit(&registers, &truth(text, &cpu));
            let of = format!("{} {:X}.{:02X}", cpu.vendor, cpu.family, cpu.model);
            assert!(faults.is_empty(), "{name}, {of}: {}", faults.join("; "));
            (tried, machines) = (tried + n, machines + 1);
        }
    }
    assert!(tried > 100_000, "{tried} bits on {machines} machines");
    println!("{tried} bits tried on {machines} machines");
}

#[test]
fn a_broken_mask_is_found() {
    let cpu = CpuFacts::of(Vendor::Intel, 6, 0x55).with(Feature::ALL);
    let (name, text) = BUNDLED[0];
    let truth = truth(text, &cpu);
    for (from, to, fault) in [
        // One bit too wide, one too narrow, a read-only one opened, a refusal dropped, a log made plain.
        (
            r#"name = "desired", bits = "23:16""#,
            r#"name = "desired", bits = "22:16""#,
            "IA32_HWP_REQUEST bit 23: writable is true",
        ),
        (
            r#"name = "boost_disengage", bits = "32""#,
            r#"name = "boost_disengage", bits = "33:32""#,
            "IA32_PERF_CTL bit 33: writable is false",
        ),
        (
            r#"name = "highest", bits = "7:0", access = "ro""#,
            r#"name = "highest", bits = "7:0", access = "rw""#,
            "IA32_HWP_CAPABILITIES bit 7: writable is false",
        ),
        (
            r#"refuse = "it protects the CPU from heat""#,
            r#"unit = """#,
            "IA32_MISC_ENABLE bit 3: writable is false",
        ),
        (
            r#"name = "hot_log", bits = "1", access = "rwc0""#,
            r#"name = "hot_log", bits = "1", access = "ro""#,
            "IA32_THERM_STATUS bit 1: writable is true",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let broken = register_toml::parse(&text.replace(from, to), name).unwrap();
        let (faults, _) = audit(&Registers::from_files(&[broken], &cpu), &truth);
        assert!(faults.iter().any(|f| f.starts_with(fault)), "{to} was not found: {faults:?}");
    }
}

#[test]
fn no_register_that_could_not_be_restored_can_be_written() {
    // Bits that hold until reset: named here by hand, whatever the files say.
    let intel = Registers::for_cpu(&CpuFacts::of(Vendor::Intel, 6, 0x9E).with(Feature::ALL));
    let amd = Registers::for_cpu(&CpuFacts::of(Vendor::Amd, 0x19, 0x21).with(Feature::ALL));
    for (registers, address, bit) in
        [(&intel, 0x770, 0), (&intel, 0x610, 63), (&intel, 0xE2, 15), (&amd, 0xC001_02B1, 0)]
    {
        assert!(registers.check_write(address, 0, 1 << bit).is_err(), "{address:#x} bit {bit}");
    }
}
