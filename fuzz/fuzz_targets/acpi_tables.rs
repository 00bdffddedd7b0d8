//! ACPI tables: any bytes give processors or one line each; seeds: crates/hw/tests/acpi/*.aml.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wattwise_hw::acpi;

fuzz_target!(|data: &[u8]| {
    let mut sealed = data.to_vec();
    // Length and checksum are made to fit: the fuzzer need not find them.
    if sealed.len() >= 36 {
        sealed[..4].copy_from_slice(b"SSDT");
        let length = sealed.len() as u32;
        sealed[4..8].copy_from_slice(&length.to_le_bytes());
        sealed[9] = 0;
        sealed[9] = sealed.iter().fold(0u8, |sum, b| sum.wrapping_sub(*b));
    }
    let tables = [("raw".to_owned(), data.to_vec()), ("sealed".to_owned(), sealed)];
    let found = acpi::parse(&tables);
    assert!(!found.summary().contains('\n'));
    for fault in &found.faults {
        assert!(!fault.to_string().contains('\n'));
    }
    for processor in &found.processors {
        assert!(processor.pss.as_ref().is_none_or(|list| !list.states.is_empty()));
    }
    let _ = wattwise_hw::msr::pstate::PStates::from_acpi(&found);
});
