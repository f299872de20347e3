//! Evaluates a file, or the text of this example: `cargo run -p flowstone-embed --example evaluate [FILE]`.

#![expect(
    clippy::disallowed_methods,
    reason = "the language has no files and no process; the program around it has"
)]

use std::error::Error;
use std::io::Write;

use flowstone_embed::{Output, Sandbox, Session};

const PROGRAM: &str = r#"
(defn primes [n]
  (filter (fn [x] (not-any? #(zero? (rem x %)) (range 2 x)))
          (range 2 n)))
(println "counting")
(count (primes 100))
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let (name, text) = match std::env::args().nth(1) {
        Some(file) => (file.clone(), std::fs::read_to_string(file)?),
        None => ("primes.clj".to_owned(), PROGRAM.to_owned()),
    };
    let session = Session::new();
    let output = Output::new();
    let result = session.evaluate_in(Sandbox::new().output(&output), &name, &text);
    let mut out = std::io::stdout().lock();
    out.write_all(output.take().as_bytes())?;
    match result {
        Ok(value) => writeln!(out, "=> {}", session.show(&value))?,
        // The message contains the place, the line and a hint.
        Err(failure) => writeln!(out, "{failure}")?,
    }
    Ok(())
}
