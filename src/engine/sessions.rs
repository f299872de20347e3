//! Sessions that several runs use: making one and reading a program costs more than most drives, and takes more memory
//! than a run that waits.
//!
//! Runs of one program share a session, also at the same time, where nothing in that program can change what a session
//! knows: so no run sees another. Where a drive did not come to a good end, its session goes to no further run. The
//! compiled body of a flow is compiled step by step while it is evaluated, so one run has it at a time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use flowstone_lang::session::{Body, Session};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::flow::{self, Flow};
use crate::ports::RunRow;

/// How many programs have a session that is kept for later.
const KEPT: usize = 64;
/// How many compiled bodies of a program are kept for later.
const BODIES: usize = 32;
/// What an evaluation leaves in a session is let go of with it.
const USES: u32 = 1_000;

/// Words that change what a session knows, or may find out what does. Where one of them stands anywhere in a program,
/// even in a text, each of its runs has a session of its own.
const CHANGING: &[&str] = &[
    "alias",
    "binding",
    "derive",
    "eval",
    "find-var",
    "gensym",
    "import",
    "in-ns",
    "intern",
    "macroexpand",
    "macroexpand-1",
    "macroexpand-all",
    "ns-resolve",
    "prefer-method",
    "proxy",
    "refer",
    "refer-clojure",
    "reify",
    "require",
    "requiring-resolve",
    "reset-meta!",
    "resolve",
    "set!",
    "set-validator!",
    "underive",
    "use",
    "var-set",
];
/// Beginnings of such words.
const CHANGING_STARTS: &[&str] = &[
    "add-",
    "alter-",
    "bound-",
    "create-ns",
    "def",
    "extend",
    "load",
    "ns",
    "push-",
    "remove-",
    "the-ns",
    "var-",
    "with-",
];
/// Words with such a beginning that change nothing.
const HARMLESS: &[&str] = &["default", "with-meta", "with-open"];

/// What a drive begins with.
pub(crate) struct Prepared {
    pub session: Rc<Session>,
    pub flow: Rc<Flow>,
    /// Compiled as far as a drive came.
    pub body: Rc<Body>,
    /// Other runs of the program may have the session, too.
    is_shared: bool,
}

/// A session for the runs of one program.
struct Shared {
    session: Rc<Session>,
    flow: Rc<Flow>,
    /// Compiled bodies that no run has.
    bodies: Vec<Rc<Body>>,
    uses: u32,
}

/// The sessions of programs.
#[derive(Default)]
pub(crate) struct Sessions {
    shared: RefCell<HashMap<String, Shared>>,
}

impl Sessions {
    fn take(&self, program: &str) -> Option<Prepared> {
        let mut all = self.shared.borrow_mut();
        let shared = all.get_mut(program)?;
        shared.uses += 1;
        let prepared = Prepared {
            session: shared.session.clone(),
            flow: shared.flow.clone(),
            body: shared
                .bodies
                .pop()
                .unwrap_or_else(|| Rc::new(Body::new(&shared.flow.body))),
            is_shared: true,
        };
        if shared.uses >= USES {
            all.remove(program);
        }
        Some(prepared)
    }

    /// Lets other runs of a program use a session.
    fn share(&self, program: &str, prepared: &Prepared) {
        if !prepared.is_shared {
            return;
        }
        let mut all = self.shared.borrow_mut();
        if all.len() >= KEPT && !all.contains_key(program) {
            let other = all.keys().next().cloned();
            other.map(|other| all.remove(&other));
        }
        let shared = Shared {
            session: prepared.session.clone(),
            flow: prepared.flow.clone(),
            bodies: Vec::new(),
            uses: 1,
        };
        all.insert(program.to_owned(), shared);
    }

    /// Keeps a compiled body for the next run of its program.
    pub(crate) fn give_back(&self, program: &str, prepared: Prepared) {
        let mut all = self.shared.borrow_mut();
        let shared = all.get_mut(program);
        let shared = shared.filter(|shared| Rc::ptr_eq(&shared.session, &prepared.session));
        if let Some(shared) = shared.filter(|shared| shared.bodies.len() < BODIES) {
            shared.bodies.push(prepared.body);
        }
    }

    /// Gives a session to no further run: one that used it was stopped in the middle.
    pub(crate) fn retire(&self, program: &str, prepared: &Prepared) {
        let mut all = self.shared.borrow_mut();
        let is_it = |shared: &Shared| Rc::ptr_eq(&shared.session, &prepared.session);
        if all.get(program).is_some_and(is_it) {
            all.remove(program);
        }
    }

    /// Keeps one body of each program, when there is little to do.
    pub(crate) fn shrink(&self) {
        for shared in self.shared.borrow_mut().values_mut() {
            shared.bodies.truncate(1);
        }
    }
}

impl Engine {
    /// Returns a session with the program of a run.
    pub(crate) async fn prepare(&self, row: &RunRow) -> Result<Prepared, EngineError> {
        let run = row.id.to_string();
        if row.program == crate::interactive::PROGRAM {
            return Err(EngineError::Interactive { run });
        }
        if let Some(prepared) = self.sessions.take(&row.program) {
            return Ok(prepared);
        }
        let bad_program = |detail: &str| EngineError::BadProgram {
            run: run.clone(),
            detail: detail.to_owned(),
        };
        let program = self.stores().runs.program(&row.program).await?;
        let program = program.ok_or_else(|| bad_program("it is missing"))?;
        if program.engine_abi != flow::ENGINE_ABI {
            return Err(EngineError::OtherAbi {
                run,
                found: program.engine_abi,
                known: flow::ENGINE_ABI,
            });
        }
        let session = Rc::new(self.session());
        let checked = flow::reload(&session, &program);
        let Some(loaded) = checked.loaded else {
            let first = checked
                .findings
                .first()
                .map(|finding| finding.message.as_str());
            return Err(bad_program(first.unwrap_or("it is no flow")));
        };
        let prepared = Prepared {
            session,
            body: Rc::new(Body::new(&loaded.flow.body)),
            flow: loaded.flow,
            is_shared: flow::program_files(&program)
                .is_some_and(|(_, files)| files.values().all(|text| is_harmless(text))),
        };
        self.sessions.share(&row.program, &prepared);
        Ok(prepared)
    }
}

/// Tells whether code leaves the session that it runs in as it was.
fn is_harmless(text: &str) -> bool {
    // A syntax quote makes names that no other run may see.
    if text.contains('`') {
        return false;
    }
    let text = text
        .replace("\\n", " ")
        .replace("\\t", " ")
        .replace("\\r", " ");
    let is_part = |char: char| char.is_alphanumeric() || "-_!?*+<>=.&:".contains(char);
    // Of a qualified name, the part behind the slash counts; a keyword is no name.
    text.split(|char| !is_part(char)).all(|word| {
        word.starts_with(':')
            || HARMLESS.contains(&word)
            || !CHANGING.contains(&word)
                && !CHANGING_STARTS.iter().any(|start| word.starts_with(start))
    })
}

#[cfg(test)]
mod tests {
    use super::is_harmless;

    #[test]
    fn what_may_change_a_session() {
        let harmless = [
            "(let [x (flow/step :wait :gate {:key \"k\" :default-value 1})] {:got x})",
            "(mapv #(assoc % :a 1) (range 10))",
            "(with-meta [] {:a 1 :def 2})",
        ];
        for text in harmless {
            assert!(is_harmless(text), "{text}");
        }
        let changing = [
            "(defn f [] 1)",
            "{:code \"(do\\ndefmulti)\"}",
            "(clojure.core/eval '(+ 1 2))",
            "(str `x#)",
            "(with-redefs [inc dec] (inc 1))",
            "(apply alter-var-root args)",
            "(ns-unmap 'user 'x)",
        ];
        for text in changing {
            assert!(!is_harmless(text), "{text}");
        }
    }
}
