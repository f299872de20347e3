//! Sessions that are used again: making one and reading a program costs more than most drives.
//!
//! One run has a session at a time. It goes to the next run of the same program only where nothing in that program can
//! change what a session knows, and where the drive came to a good end: so no run sees another.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use flowstone_lang::session::{Body, Session};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::flow::{self, Flow};
use crate::ports::RunRow;

/// So many sessions are kept for later, of all programs together.
const KEPT: usize = 64;
/// What an evaluation leaves in a session is let go of with it.
const USES: u32 = 1_000;

/// Words that change what a session knows, or may find out what does. Where one of them stands anywhere in a program,
/// even in a text, its sessions are used once.
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
    uses: u32,
    /// Another run of the program may have the session after this.
    is_reusable: bool,
}

/// The sessions that wait for a run.
#[derive(Default)]
pub(crate) struct Sessions {
    free: RefCell<HashMap<String, Vec<Prepared>>>,
}

impl Sessions {
    fn take(&self, program: &str) -> Option<Prepared> {
        let mut free = self.free.borrow_mut();
        let waiting = free.get_mut(program)?;
        let prepared = waiting.pop();
        if waiting.is_empty() {
            free.remove(program);
        }
        prepared
    }

    /// Keeps a session for the next run of its program, where that is safe.
    pub(crate) fn give_back(&self, program: &str, mut prepared: Prepared) {
        prepared.uses += 1;
        let is_ours_alone = Rc::strong_count(&prepared.session) == 1;
        if !prepared.is_reusable || !is_ours_alone || prepared.uses >= USES {
            return;
        }
        let mut free = self.free.borrow_mut();
        let kept: usize = free.values().map(Vec::len).sum();
        if kept >= KEPT {
            // Of another program, before this one has none.
            let other = free.keys().find(|known| *known != program).cloned();
            let Some(other) = other.filter(|_| !free.contains_key(program)) else {
                return;
            };
            free.remove(&other);
        }
        free.entry(program.to_owned()).or_default().push(prepared);
    }

    /// Keeps one session of each program, when there is little to do.
    pub(crate) fn shrink(&self) {
        for waiting in self.free.borrow_mut().values_mut() {
            waiting.truncate(1);
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
        Ok(Prepared {
            session,
            body: Rc::new(Body::new(&loaded.flow.body)),
            flow: loaded.flow,
            uses: 0,
            is_reusable: flow::program_files(&program)
                .is_some_and(|(_, files)| files.values().all(|text| is_harmless(text))),
        })
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
