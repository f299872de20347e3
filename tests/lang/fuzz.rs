//! Replays and mutates the corpus of the language's fuzzing targets; `docs/testing.md` describes how to run the fuzzer.

#![expect(
    clippy::disallowed_methods,
    reason = "the corpus is files, and a long run is bounded by time"
)]

#[path = "../fuzz/inputs.rs"]
mod inputs;
#[path = "../fuzz/mutate.rs"]
mod mutate;

#[test]
fn the_corpus_does_no_harm() {
    mutate::replay(inputs::TARGETS, &[]);
}

#[test]
fn mutations_of_the_corpus_do_no_harm() {
    mutate::mutate(inputs::TARGETS, &[]);
}
