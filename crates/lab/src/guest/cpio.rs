//! An initramfs: the "newc" cpio that the kernel unpacks into its first root.
//!
//! Written here, so that the lab needs neither cpio nor root: device nodes come from devtmpfs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// An archive under construction.
pub(crate) struct Cpio {
    bytes: Vec<u8>,
    inodes: u32,
}

const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_000;
const EXECUTABLE: u32 = FILE | 0o755;
const LINK: u32 = 0o120_777;

impl Cpio {
    pub(crate) fn new() -> Cpio {
        Cpio { bytes: Vec::new(), inodes: 0 }
    }

    fn entry(&mut self, name: &str, mode: u32, data: &[u8]) {
        self.inodes += 1;
        // magic, inode, mode, uid, gid, links, mtime, size, device x 4, length of the name with its NUL, checksum
        let fields = [self.inodes, mode, 0, 0, 1, 0, data.len() as u32, 0, 0, 0, 0, name.len() as u32 + 1, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(data);
        self.pad();
    }

    /// Headers and contents start at multiples of four.
    fn pad(&mut self) {
        let padded = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(padded, 0);
    }

    pub(crate) fn directory(&mut self, name: &str) {
        self.entry(name, DIRECTORY, &[]);
    }

    pub(crate) fn file(&mut self, name: &str, data: &[u8]) {
        self.entry(name, EXECUTABLE, data);
    }

    pub(crate) fn link(&mut self, name: &str, to: &str) {
        self.entry(name, LINK, to.as_bytes());
    }

    pub(crate) fn copy(&mut self, name: &str, from: &Path) -> Result<(), String> {
        let told = |e: std::io::Error| format!("{}: {e}", from.display());
        let mode = fs::metadata(from).map_err(told)?.permissions().mode();
        self.entry(name, FILE | mode & 0o777, &fs::read(from).map_err(told)?);
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_end_with_the_trailer() {
        let mut cpio = Cpio::new();
        cpio.directory("bin");
        cpio.file("init", b"#!/bin/sh\n");
        let bytes = cpio.finish();
        assert_eq!(bytes.len() % 4, 0);
        assert_eq!(&bytes[..6], b"070701");
        // 6 + 13 * 8 bytes of header, then the name.
        assert_eq!(&bytes[110..114], b"bin\0");
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(text.matches("070701").count(), 3);
        assert!(text.contains("TRAILER!!!"));
    }
}
