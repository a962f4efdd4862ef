//! See `entries::form`.

#![no_main]

#[path = "../../tests/fuzz/entries.rs"]
#[allow(dead_code)]
mod entries;

libfuzzer_sys::fuzz_target!(|data: &[u8]| entries::form(data));
