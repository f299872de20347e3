#![no_main]

#[path = "../engine_inputs.rs"]
mod inputs;

libfuzzer_sys::fuzz_target!(|input: &[u8]| inputs::schedule(input));
