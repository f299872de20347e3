//! Replays and mutates the corpus of the steps' fuzzing targets. `docs/testing.md` describes how to run the fuzzer
//! itself.

#[path = "../fuzz/steps_inputs.rs"]
mod inputs;
#[path = "../fuzz/mutate.rs"]
mod mutate;

const MORE: &[mutate::More] = &[("flow", "flows", ".edn")];

#[test]
fn the_corpus_does_no_harm() {
    mutate::replay(inputs::TARGETS, MORE);
}

#[test]
fn mutations_of_the_corpus_do_no_harm() {
    mutate::mutate(inputs::TARGETS, MORE);
}
