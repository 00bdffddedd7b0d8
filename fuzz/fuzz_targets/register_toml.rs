//! Register files: any text gives one line, or registers whose rules hold; seeds: machines/registers/*.toml.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wattwise_hw::cpus::cpuid::{CpuFacts, Feature};
use wattwise_hw::msr::{Registers, register_toml as file};

fuzz_target!(|text: &str| {
    let file = match file::parse(text, "fuzz.toml") {
        Ok(file) => file,
        Err(e) => return assert!(!e.to_string().contains('\n'), "{e}"),
    };
    let (family, model) = file.models().first().copied().unwrap_or((6, 0x55));
    let bare = CpuFacts::of(file.vendors()[0].clone(), family, model);
    for cpu in [bare.clone(), bare.with(Feature::ALL)] {
        let registers = Registers::from_files(std::slice::from_ref(&file), &cpu);
        for register in registers.iter() {
            assert_eq!(register.write_mask() & !register.hardware_mask(), 0);
            assert_eq!(register.hardware_mask() & !register.known_mask(), 0);
            let widths: u32 = register.fields.iter().map(|f| f.mask().count_ones()).sum();
            assert_eq!(widths, register.known_mask().count_ones(), "fields overlap");
            register.decode(u64::MAX);
            let wrong = !register.write_mask();
            assert_eq!(registers.check_write(register.address, 0, wrong).is_ok(), wrong == 0);
        }
    }
});
