//! The fuzz targets over a fixed set of inputs, so that every run of the tests exercises them.

mod entries;

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

/// Inputs from which others are made.
const SEEDS: [&[u8]; 14] = [
    b"",
    b"\x20v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= v1a,x {\"id\":1}",
    b"\x1ct=1700000000,v1=00,v1=ff,v0={\"id\":\"evt_1\",\"type\":\"a.b\"}",
    b"\x08sha256=,sha256",
    b"\x10{id}.{timestamp}.{body}",
    b"\x20{json:a.b[0].c?}{form:a}{{x}}{url}a=1&b=%41&a=2",
    b"\x05{body",
    b"a=1&b=2&a=1&payload=%7B%22type%22%3A%22ping%22%7D&%zz=+",
    b"&&==&hub.mode=subscribe&hub.challenge=1",
    b"\x02id{\"id\":[1,{\"a\":null}],\"id\":2}",
    b"\x07a.b[0].c{\"a\":{\"b\":[{\"c\":\"\\u00e9\\ud83d\\ude00\"}]}}",
    b"\x05[*].x[{\"x\":1},{\"x\":{}}]",
    b"\x01x{\"type\":\"url_verification\",\"challenge\":\"abc\"}",
    b"\x40eyJhbGciOiJIUzI1NiJ9.eyJpYXQiOjE3MDAwMDAwMDB9.AAAA{}",
];

/// Inputs made of each seed.
const EACH: usize = 12;

fn inputs() -> Vec<Vec<u8>> {
    let mut random = StdRng::seed_from_u64(7);
    let mut inputs: Vec<Vec<u8>> = SEEDS.iter().map(|seed| seed.to_vec()).collect();
    for seed in SEEDS {
        for _ in 0..EACH {
            let mut input = seed.to_vec();
            for _ in 0..random.random_range(1..6) {
                let at = random.random_range(0..=input.len());
                match random.random_range(0..4) {
                    0 => input.insert(at, random.random()),
                    1 if at < input.len() => input[at] = random.random(),
                    2 if at < input.len() => drop(input.remove(at)),
                    _ => {
                        let other = SEEDS[random.random_range(0..SEEDS.len())];
                        input.extend_from_slice(&other[..other.len() / 2]);
                    }
                }
            }
            inputs.push(input);
        }
    }
    // Deep and long ones, which mutation seldom makes.
    inputs.push([b"\x01a".as_slice(), &b"[".repeat(20_000)].concat());
    inputs.push([b"\xff".as_slice(), &b"{\"a\":".repeat(5_000)].concat());
    inputs.push(b"a&".repeat(3_000));
    inputs.push([b"\xff".as_slice(), &b"v1,".repeat(3_000)].concat());
    inputs
}

#[test]
fn no_header_of_a_stranger_passes_or_panics() {
    inputs().iter().for_each(|input| entries::headers(input));
}

#[test]
fn no_scheme_of_an_operator_panics() {
    inputs().iter().for_each(|input| entries::template(input));
}

#[test]
fn no_form_of_a_stranger_passes_or_panics() {
    inputs().iter().for_each(|input| entries::form(input));
}

#[test]
fn no_json_of_a_stranger_passes_or_panics() {
    inputs().iter().for_each(|input| entries::json(input));
}
