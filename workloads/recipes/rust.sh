# A Rust program compiled with optimisation: one process, several threads that generate code.
# needs: gcc
cat >main.rs <<'RUST'
use std::collections::{BTreeMap, HashMap, HashSet};
macro_rules! kind {
    ($($name:ident $key:ty, $value:ty;)*) => { $(
        mod $name {
            use super::*;
            pub fn count(text: &str) -> usize
            where $key: std::str::FromStr + Ord + std::hash::Hash + Clone, $value: From<u8> + PartialOrd + Copy + std::ops::Add<Output = $value> {
                let mut sorted: BTreeMap<$key, $value> = BTreeMap::new();
                let mut hashed: HashMap<$key, Vec<$value>> = HashMap::new();
                for word in text.split_whitespace() {
                    if let Ok(key) = word.parse::<$key>() {
                        let entry = sorted.entry(key.clone()).or_insert(<$value>::from(0u8));
                        *entry = *entry + <$value>::from(1u8);
                        hashed.entry(key).or_default().push(*entry);
                    }
                }
                let mut all: Vec<_> = hashed.into_iter().map(|(k, mut v)| { v.sort_by(|a, b| b.partial_cmp(a).unwrap()); (v.len(), k) }).collect();
                all.sort();
                all.into_iter().map(|(_, k)| k).collect::<HashSet<_>>().len() + sorted.len()
            }
        }
    )* }
}
kind! { a u8, f32; b u16, f64; c u32, u64; d u64, i64; e i8, u32; f i16, i32; g i32, f64; h i64, f32; i String, u64; j char, u16; }
fn main() {
    let text = std::env::args().collect::<Vec<_>>().join(" ");
    println!("{}", a::count(&text) + b::count(&text) + c::count(&text) + d::count(&text) + e::count(&text) + f::count(&text)
        + g::count(&text) + h::count(&text) + i::count(&text) + j::count(&text));
}
RUST
rustc=$(rustup which rustc 2>/dev/null || command -v rustc)
record -- "$rustc" --edition 2021 -O -o program main.rs
