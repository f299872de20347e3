//! The corpus of the fuzzing targets, replayed: `docs/testing.md` says how the fuzzer itself is run.

#![expect(clippy::disallowed_methods, reason = "the corpus is files")]

use std::fs;
use std::path::Path;

#[path = "../fuzz/inputs.rs"]
mod inputs;

#[test]
fn the_corpus_does_no_harm() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/corpus");
    for (name, target) in inputs::TARGETS {
        let folder = fs::read_dir(corpus.join(name)).expect("each target has a corpus");
        let mut count = 0;
        for entry in folder {
            let path = entry.expect("the folder is readable").path();
            target(&fs::read(&path).expect("the input is readable"));
            count += 1;
        }
        assert!(count > 1, "{name} has no corpus");
    }
}
