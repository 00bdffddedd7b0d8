//! The table of symbols of an object in memory, as far as `bind.rs` needs it: names are found and given another address.

use libc::{Elf64_Ehdr, Elf64_Phdr, Elf64_Sym, c_int};
use std::ffi::CStr;
use std::ptr::null;
use std::sync::atomic::{AtomicU64, Ordering};

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_NULL: i64 = 0;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_SONAME: i64 = 14;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const PF_X: u32 = 1;
const PF_W: u32 = 2;
const SHN_UNDEF: u16 = 0;

/// An entry of the dynamic section.
#[repr(C)]
#[derive(Clone, Copy)]
struct Dyn {
    tag: i64,
    value: u64,
}

/// An object that the dynamic linker has loaded, and not unloaded while this is in use.
pub(crate) struct ElfObject<'a> {
    base: usize,
    headers: &'a [Elf64_Phdr],
    symbols: *mut Elf64_Sym,
    strings: *const u8,
    hash: *const u32,
    soname: u64,
}

impl<'a> ElfObject<'a> {
    /// `None`: it has no table that is searched by GNU's hash.
    ///
    /// # Safety
    /// `headers` are those of an object at `base` that stays loaded for as long as `'a`.
    pub(crate) unsafe fn new(base: usize, headers: &'a [Elf64_Phdr]) -> Option<ElfObject<'a>> {
        let dynamic = headers.iter().find(|header| header.p_type == PT_DYNAMIC)?;
        let mut entry = base.wrapping_add(dynamic.p_vaddr as usize) as *const Dyn;
        let (mut symbols, mut strings, mut hash, mut soname) = (0, 0, 0, u64::MAX);
        loop {
            // SAFETY: a dynamic section ends with DT_NULL.
            let Dyn { tag, value } = unsafe { *entry };
            // glibc has replaced offsets by addresses, but where the section cannot be written.
            let address = if (value as usize) < base { base + value as usize } else { value as usize };
            match tag {
                DT_NULL => break,
                DT_SYMTAB => symbols = address,
                DT_STRTAB => strings = address,
                DT_GNU_HASH => hash = address,
                DT_SONAME => soname = value,
                _ => {}
            }
            // SAFETY: as above.
            entry = unsafe { entry.add(1) };
        }
        (symbols != 0 && strings != 0 && hash != 0).then_some(ElfObject {
            base,
            headers,
            symbols: symbols as *mut Elf64_Sym,
            strings: strings as *const u8,
            hash: hash as *const u32,
            soname,
        })
    }

    /// The object whose first byte is at `base`, as that of every shared library of glibc is.
    ///
    /// # Safety
    /// `base` is where an object is loaded that stays so for as long as `'a`.
    pub(crate) unsafe fn at(base: usize) -> Option<ElfObject<'a>> {
        // SAFETY: by contract; such an object begins with its ELF header, which says where the others are.
        unsafe {
            let header = &*(base as *const Elf64_Ehdr);
            if header.e_ident[..4] != *b"\x7fELF"
                || usize::from(header.e_phentsize) != size_of::<Elf64_Phdr>()
            {
                return None;
            }
            let first = (base + header.e_phoff as usize) as *const Elf64_Phdr;
            ElfObject::new(base, std::slice::from_raw_parts(first, usize::from(header.e_phnum)))
        }
    }

    /// The name by which others need it.
    pub(crate) fn soname(&self) -> &'a CStr {
        if self.soname == u64::MAX { c"" } else { self.string(self.soname as usize) }
    }

    fn string(&self, at: usize) -> &'a CStr {
        // SAFETY: offsets in the object's own tables are of strings that end in zero.
        unsafe { CStr::from_ptr(self.strings.add(at).cast()) }
    }

    /// Calls `each` with the name and the address of everything that it defines.
    pub(crate) fn exports(&self, mut each: impl FnMut(&'a CStr, usize)) {
        // SAFETY: as in `definitions`; the highest symbol in a bucket begins the last chain.
        unsafe {
            let [buckets, first, filter] = [0, 1, 2].map(|at| *self.hash.add(at));
            let bucket = self.hash.add(4 + 2 * filter as usize);
            let chain = bucket.add(buckets as usize);
            let last = (0..buckets).map(|at| *bucket.add(at as usize)).max().unwrap_or(0);
            if last < first {
                return;
            }
            for symbol in first.. {
                let entry = &*self.symbols.add(symbol as usize);
                if entry.st_shndx != SHN_UNDEF {
                    each(
                        self.string(entry.st_name as usize),
                        self.base.wrapping_add(entry.st_value as usize),
                    );
                }
                if symbol >= last && *chain.add((symbol - first) as usize) & 1 != 0 {
                    return;
                }
            }
        }
    }

    /// Calls `each` with every definition of a name, of whatever version.
    fn definitions(&self, name: &CStr, mut each: impl FnMut(*mut Elf64_Sym)) {
        let hash =
            name.to_bytes().iter().fold(5381_u32, |h, b| h.wrapping_mul(33).wrapping_add(u32::from(*b)));
        // SAFETY: the layout of a table by GNU's hash: four words, a filter of words of 64 bits, buckets, chains. A
        // chain's last hash has its lowest bit set.
        unsafe {
            let [buckets, first, filter] = [0, 1, 2].map(|at| *self.hash.add(at));
            let bucket = self.hash.add(4 + 2 * filter as usize);
            let chain = bucket.add(buckets as usize);
            let mut symbol = *bucket.add((hash % buckets.max(1)) as usize);
            while symbol >= first {
                let here = *chain.add((symbol - first) as usize);
                let entry = self.symbols.add(symbol as usize);
                if here | 1 == hash | 1
                    && (*entry).st_shndx != SHN_UNDEF
                    && self.string((*entry).st_name as usize) == name
                {
                    each(entry);
                }
                if here & 1 != 0 {
                    return;
                }
                symbol += 1;
            }
        }
    }

    /// Has look-ups of these names in this object give these addresses. False: they cannot be changed, and none is; or there
    /// is not one of them.
    pub(crate) fn redirect(&self, names: &[(&CStr, usize)]) -> bool {
        let (mut low, mut high) = (usize::MAX, 0);
        for (name, _) in names {
            self.definitions(name, |symbol| {
                low = low.min(symbol.addr());
                high = high.max(symbol.addr() + size_of::<Elf64_Sym>());
            });
        }
        if high == 0 {
            return false;
        }
        let Some(usual) = self.protection(low) else { return false };
        if !protect(low, high, usual | libc::PROT_WRITE) {
            return false;
        }
        for (name, to) in names {
            self.definitions(name, |symbol| {
                // The dynamic linker adds the base. Other threads may be reading.
                // SAFETY: in the object's table, which can be written now; aligned as a u64.
                let value = unsafe { &*(&raw const (*symbol).st_value).cast::<AtomicU64>() };
                value.store(to.wrapping_sub(self.base) as u64, Ordering::Relaxed);
            });
        }
        // If that fails, the table can be written on: no harm.
        protect(low, high, usual);
        true
    }

    /// How the segment with this address is mapped.
    fn protection(&self, at: usize) -> Option<c_int> {
        let holds = |header: &&Elf64_Phdr| {
            let from = self.base.wrapping_add(header.p_vaddr as usize);
            header.p_type == PT_LOAD && at >= from && at - from < header.p_memsz as usize
        };
        let flags = self.headers.iter().find(holds)?.p_flags;
        let bit = |flag, prot| if flags & flag != 0 { prot } else { 0 };
        Some(libc::PROT_READ | bit(PF_W, libc::PROT_WRITE) | bit(PF_X, libc::PROT_EXEC))
    }
}

fn protect(low: usize, high: usize, prot: c_int) -> bool {
    // SAFETY: no arguments but a name.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(4096) as usize;
    let from = low & !(page - 1);
    // SAFETY: pages of an object's own table, which nobody writes meanwhile; what may be done with them before may be done after.
    unsafe { libc::mprotect(null::<u8>().with_addr(from).cast_mut().cast(), high - from, prot) == 0 }
}
