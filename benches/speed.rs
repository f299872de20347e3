//! Speed of what people wait for: starting, computing, reading, journaling.
//! `cargo bench --bench speed`, or with a part of a name after it.

use std::process::{Command, Stdio};

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use flowstone_lang::reader::{NoContext, ReadOptions, Reader};
use flowstone_lang::session::Session;
use flowstone_lang::value::{Sources, Value};
use flowstone_lang::vm::NoHost;

fn main() {
    divan::main();
}

/// The whole process, to the printed value.
#[divan::bench(sample_count = 50)]
fn start_eval() {
    let status = Command::new(env!("CARGO_BIN_EXE_flowstone"))
        .args(["eval", "(+ 1 2)"])
        .stdout(Stdio::null())
        .status();
    assert!(status.is_ok_and(|status| status.success()));
}

/// A session with its library, ready to evaluate.
#[divan::bench]
fn start_session() -> Session {
    Session::new()
}

const FIB: &str = "(defn fib [n] (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (fib 30)";

#[divan::bench(sample_count = 10)]
fn fib_30(bencher: Bencher<'_, '_>) {
    bench_program(bencher, FIB);
}

#[divan::bench(sample_count = 10)]
fn map_filter_reduce_of_a_million(bencher: Bencher<'_, '_>) {
    bench_program(
        bencher,
        "(reduce + (map inc (filter even? (range 1000000))))",
    );
}

fn bench_program(bencher: Bencher<'_, '_>, program: &str) {
    let session = Session::new();
    bencher.bench_local(|| -> Value {
        let mut vm = session.vm(Box::new(NoHost::default()));
        let value = session.eval_text(&mut vm, "bench", black_box(program));
        value.expect("the program works")
    });
}

/// Ten megabytes of rows, as data.
#[divan::bench(sample_count = 10)]
fn read_edn(bencher: Bencher<'_, '_>) {
    let text = rows(10_000_000);
    bencher
        .counter(BytesCount::new(text.len()))
        .bench_local(|| -> Value {
            let mut sources = Sources::default();
            let source = sources.add("bench", "");
            Reader::new(black_box(&text), ReadOptions::data(source))
                .next(&mut NoContext::default())
                .expect("it is EDN")
                .expect("it has a value")
        });
}

/// Returns a vector of maps of about this many bytes.
fn rows(bytes: usize) -> String {
    let mut text = String::from("[");
    let mut idx = 0;
    while text.len() < bytes {
        let row = format!(
            "{{:id {idx}, :name \"row number {idx}\", :tags [:a :b/c \"d\\n\"], :ratio {}.5, :open? true, :next nil}}\n",
            idx % 100
        );
        text.push_str(&row);
        idx += 1;
    }
    text.push(']');
    text
}

/// Steps of one run, each journaled: the whole process, with its start and a fresh store.
#[divan::bench(sample_count = 5)]
fn journaled_steps(bencher: Bencher<'_, '_>) {
    const STEPS: usize = 1_000;
    let flow = format!(
        "(doseq [i (range {STEPS})] (flow/step :kv :count {{:operation :increment :key \"steps\"}}))"
    );
    bencher
        .with_inputs(|| {
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::write(folder.path().join("flow.clj"), &flow).expect("a file");
            folder
        })
        .counter(ItemsCount::new(STEPS))
        .bench_local_values(|folder| {
            let status = Command::new(env!("CARGO_BIN_EXE_flowstone"))
                .args(["run", "flow.clj", "--quiet"])
                .current_dir(folder.path())
                .stdout(Stdio::null())
                .status();
            assert!(status.is_ok_and(|status| status.success()));
            folder
        });
}
