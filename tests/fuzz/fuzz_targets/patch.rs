#![no_main]

#[path = "../steps_inputs.rs"]
mod inputs;

libfuzzer_sys::fuzz_target!(|input: &[u8]| inputs::patch_of_file(input));
