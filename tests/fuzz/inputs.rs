//! What each fuzzing target does with an input. Any input may fail with an exception or be stopped; none may
//! panic, hang, or break what is asserted here. The tests of the language replay the corpus with these.

#![allow(dead_code, reason = "each target uses one of these")]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use flowstone_lang::reader::{NoContext, ReadOptions, Reader, read_all_data};
use flowstone_lang::session::Session;
use flowstone_lang::value::{
    PrintOptions, Result, Signal, SourceId, Stop, Unforced, Value, print_value,
};
use flowstone_lang::vm::{Host, NoHost, Request, Stream, Vm};

/// Does something with an input.
pub type Target = fn(&[u8]);

/// The targets, each named after its folder in the corpus.
pub const TARGETS: &[(&str, Target)] = &[
    ("edn", edn),
    ("program", program),
    ("reader", reader),
    ("text", text),
];

/// Reads code; what was read prints to something that reads again.
pub fn reader(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let mut reader = Reader::new(text, ReadOptions::code(SourceId(0)));
    let mut cx = NoContext::default();
    loop {
        match reader.next(&mut cx) {
            Ok(Some(form)) => drop(printed(&form)),
            Ok(None) => return,
            Err(error) => {
                let places = [Some(error.span), error.related.map(|related| related.0)];
                for span in places.into_iter().flatten() {
                    let place = text.get(span.start as usize..span.end as usize);
                    assert!(place.is_some(), "{span:?} lies outside of the text");
                }
                return;
            }
        }
    }
}

/// Reads data; what it prints as reads as the same.
pub fn edn(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let Ok(forms) = read_all_data(text) else {
        return;
    };
    for form in &forms {
        let once = printed(form);
        let again = read_all_data(&once).unwrap_or_else(|error| panic!("{once}: {error:?}"));
        assert_eq!(again.len(), 1, "{once} is several forms");
        assert_eq!(printed(&again[0]), once);
        if !once.contains("NaN") && !once.contains("#\"") {
            assert_eq!(
                &again[0], form,
                "{once} does not equal what it was printed from"
            );
        }
    }
}

/// Compiles and runs a program within a budget, and prints what it gives.
pub fn program(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let session = Session::new();
    let mut vm = session.vm(Box::new(Limited(Rc::new(Cell::new(10)))));
    let options = PrintOptions {
        length: Some(20),
        level: Some(20),
        ..PrintOptions::READABLE
    };
    let result = session
        .eval_text(&mut vm, "<fuzz>", text)
        .and_then(|value| vm.print(&value, options));
    if let Err(Signal::Throw(exception)) = result {
        let class = exception.class.0.name;
        assert_ne!(exception.code, "E0399", "{class}: {}", exception.text());
    }
}

/// `format`, `cl-format`, regexes and number parsing: the first line is what they are told, the rest what they
/// are given.
pub fn text(input: &[u8]) {
    let Ok(input) = std::str::from_utf8(input) else {
        return;
    };
    let (pattern, rest) = input.split_once('\n').unwrap_or((input, ""));
    if pattern.len() > 200 || rest.len() > 1000 {
        return;
    }
    TEXT.with_borrow_mut(|prepared| {
        let (vm, function, refills) = prepared.get_or_insert_with(prepare);
        refills.set(CALL);
        let args = [Value::from(pattern), Value::from(rest)];
        let _ = vm.call(function, &args);
    });
}

thread_local! {
    static TEXT: RefCell<Option<Prepared>> = const { RefCell::new(None) };
}

/// A machine, the function that takes an input, and how often the machine is given instructions.
type Prepared = (Vm, Value, Rc<Cell<u32>>);

/// How often a call on one input is given instructions: padding to a width of many digits ends here.
const CALL: u32 = 200;

fn prepare() -> Prepared {
    let session = Session::new();
    let refills = Rc::new(Cell::new(u32::MAX));
    let mut vm = session.vm(Box::new(Limited(refills.clone())));
    let function = session
        .eval_text(
            &mut vm,
            "<fuzz>",
            "(require 'clojure.pprint 'clojure.string 'clojure.edn)
             (defmacro attempt [& forms] (cons 'do (map (fn [form] `(try ~form (catch Throwable _#))) forms)))
             (fn [pattern text]
               (let [int (parse-long text) float (parse-double text)
                     args (remove nil? [int float text nil :key [1 2 3]])]
                 (attempt
                   (apply format pattern args)
                   (apply clojure.pprint/cl-format nil pattern args)
                   (let [regex (re-pattern pattern)]
                     (attempt
                       (re-find regex text)
                       (re-matches regex text)
                       (doall (take 20 (re-seq regex text)))
                       (clojure.string/split text regex)
                       (clojure.string/replace text regex \"<$0>\")))
                   (clojure.edn/read-string text)
                   (bigdec text)
                   (bigint text))))",
        )
        .unwrap_or_else(|signal| panic!("the function compiles: {signal:?}"));
    (vm, function, refills)
}

fn printed(value: &Value) -> String {
    let mut out = String::new();
    let result = print_value(&mut out, &mut Unforced, value, PrintOptions::READABLE);
    assert!(result.is_ok(), "data prints");
    out
}

/// A host that gives 20,000 instructions as often as its counter allows, and performs nothing.
struct Limited(Rc<Cell<u32>>);

impl Host for Limited {
    fn refill(&mut self) -> Result<u32, Stop> {
        self.0
            .set(self.0.get().checked_sub(1).ok_or(Stop::OutOfFuel)?);
        Ok(20_000)
    }

    fn write(&mut self, _stream: Stream, _text: &str) -> Result<(), String> {
        Ok(())
    }

    fn read_line(&mut self) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn now_millis(&mut self) -> Result<i64> {
        Ok(0)
    }

    fn now_nanos(&mut self) -> Result<i64> {
        Ok(0)
    }

    fn random(&mut self) -> Result<u64> {
        Ok(4)
    }

    fn read_file(&mut self, path: &str) -> Result<String, String> {
        NoHost::default().read_file(path)
    }

    fn write_file(&mut self, path: &str, text: &str, append: bool) -> Result<(), String> {
        NoHost::default().write_file(path, text, append)
    }

    fn find_source(&mut self, _namespace: &str) -> Option<(String, String)> {
        None
    }

    fn suspend(&mut self, request: Request) -> Result<Value> {
        NoHost::default().suspend(request)
    }

    fn sleep(&mut self, _millis: u64) -> Result<()> {
        Ok(())
    }
}
