//! Asks at the terminal whether a flow may do something that no permission covers.

use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flowstone_engine::{AskPermission, Asker, Permission, PermissionQuestion};
use flowstone_flow::permission::{Missing, shown, with_row};

use super::args::Show;
use super::output;
use super::progress::Terminal;

/// How many times the question is repeated after an invalid answer.
const TRIES: usize = 5;

/// Asks the person at the terminal.
struct Questions {
    terminal: Rc<Terminal>,
    /// The project's settings, to which permissions are added.
    settings: PathBuf,
}

/// Returns the prompt, if a person is at the terminal.
pub fn asker(show: &Show, terminal: &Rc<Terminal>, root: &Path) -> Asker {
    let is_watched = io::stdin().is_terminal() && io::stderr().is_terminal();
    if show.json || show.quiet || !is_watched {
        return Asker::default();
    }
    Asker::new(Rc::new(Questions {
        terminal: terminal.clone(),
        settings: root.join("flowstone.edn"),
    }))
}

impl AskPermission for Questions {
    fn ask(&self, question: PermissionQuestion<'_>) -> Permission {
        self.terminal.clear();
        output::note(&question_text(question));
        for _ in 0..TRIES {
            output::note_part("allow? [o]nce, for this [r]un, [w]rite it to flowstone.edn, [N]o: ");
            let mut line = String::new();
            if !matches!(io::stdin().lock().read_line(&mut line), Ok(1..)) {
                output::note("");
                return Permission::No;
            }
            match line.trim().to_lowercase().as_str() {
                "o" | "once" | "y" | "yes" => return Permission::Once,
                "r" | "run" => return Permission::Run,
                "w" | "write" => {
                    self.keep(question.missing);
                    return Permission::Run;
                }
                "" | "n" | "no" => return Permission::No,
                _ => {}
            }
        }
        Permission::No
    }
}

/// Describes the flow and the action. All of it may be text from a flow.
fn question_text(question: PermissionQuestion<'_>) -> String {
    let (flow, step) = (shown(question.flow), shown(question.step));
    let kind = question.kind;
    let action = question.missing.action();
    let row = question.missing.line();
    format!("the flow `{flow}` wants to {action}\n  step: {step} (:{kind})\n  row:  {row}")
}

impl Questions {
    /// Adds the permission to the project's settings, or shows it if the file cannot be edited.
    fn keep(&self, missing: &Missing) {
        let text = match fs::read_to_string(&self.settings) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return self.give_up(missing, &error.to_string()),
        };
        let Some(edited) = with_row(&text, missing) else {
            return self.give_up(missing, "its structure is not as expected");
        };
        // Written to a new file and renamed, so that a crash leaves either the old file or the new one.
        let beside = self.settings.with_extension("edn.new");
        let written = fs::write(&beside, edited).and_then(|()| fs::rename(&beside, &self.settings));
        match written {
            Ok(()) => output::note(&format!("added to flowstone.edn: {}", missing.line())),
            Err(error) => self.give_up(missing, &error.to_string()),
        }
    }

    fn give_up(&self, missing: &Missing, cause: &str) {
        output::note(&format!(
            "flowstone.edn was left as it is ({cause}); add this row yourself: {}",
            missing.line()
        ));
    }
}
