//! The corpus of the engine's fuzzing targets, replayed and changed: `docs/testing.md` says how the fuzzer itself is run.

#[path = "../fuzz/engine_inputs.rs"]
mod inputs;
#[path = "../fuzz/mutate.rs"]
mod mutate;

const MORE: &[mutate::More] = &[
    ("archive", "tests/golden/branches", ".run"),
    ("archive", "tests/golden/children", ".run"),
    ("archive", "tests/golden/plain", ".run"),
];

#[test]
fn the_corpus_does_no_harm() {
    mutate::replay(inputs::TARGETS, MORE);
}

#[test]
fn mutations_of_the_corpus_do_no_harm() {
    mutate::mutate(inputs::TARGETS, MORE);
}
