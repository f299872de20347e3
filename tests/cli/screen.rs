//! What models, servers, flows and files wrote is shown on a terminal so that a person reads what is there. A pipe gets data
//! as it is.

use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;

use nix::pty::{Winsize, openpty};

use crate::program::Scratch;

/// What hides, moves, reorders, colours and renames; each beside text that an approver must see.
const HOSTILE: &[(&str, &str)] = &[
    ("\u{1b}[8m", r"\x1b[8m"),
    ("\u{1b}[2J", r"\x1b[2J"),
    ("\u{1b}]0;PWNED\u{7}", r"\x1b]0;PWNED\x07"),
    ("\u{1b}]52;c;aGk=\u{7}", r"\x1b]52;c;aGk=\x07"),
    ("\u{9b}8m", r"\x9b8m"),
    ("\u{202e}", r"\u202e"),
    ("\u{2066}", r"\u2066"),
    ("a\u{200d}b", r"a\u200db"),
    ("\u{8}\u{8}", r"\x08\x08"),
    ("x\ry", r"x\x0dy"),
];

/// A flow that puts the text wherever a flow can put text, and waits.
fn flow(text: &str) -> String {
    let text = escaped(text);
    format!(
        r#"{{:slug :shown
 :flow '(let [bad {text}]
          (flow/log :info bad {{:bad bad}})
          (println bad)
          (flow/step :function (keyword bad) {{:code '(fn [in] (:bad in)) :input {{:bad bad}}}})
          (try (flow/step :function :fails {{:code '(fn [in] (throw (ex-info (:bad in) in))) :input {{:bad bad}}}})
            (catch Exception e nil))
          (flow/step :wait :ok {{:key bad :message (str "Pay 10?" bad " Pay 9000!") :data {{:bad bad}}
                                :actions [:approve :reject]}}))}}"#
    )
}

/// Returns a text as EDN that holds no character of it as it is.
fn escaped(text: &str) -> String {
    let units = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
    format!("\"{}\"", units.collect::<String>())
}

/// Runs a command on a terminal; returns what the terminal got.
fn on_terminal(scratch: &Scratch, args: &[&str], input: &str) -> String {
    let size = Winsize {
        ws_row: 50,
        ws_col: 200,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let pty = openpty(Some(&size), None).expect("a terminal");
    let side = || Stdio::from(pty.slave.try_clone().expect("a handle"));
    let mut command = scratch.command(args);
    let mut child = command
        .env("TERM", "xterm")
        .stdin(side())
        .stdout(side())
        .stderr(side())
        .spawn()
        .expect("the program starts");
    drop(command);
    let mut screen = File::from(pty.master.try_clone().expect("a handle"));
    drop(pty.slave);
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        // The terminal is gone with its last user: an error on Linux.
        let _ = screen.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut keyboard = File::from(pty.master);
    std::io::Write::write_all(&mut keyboard, input.as_bytes()).expect("typed");
    child.wait().expect("it ends");
    drop(keyboard);
    reader.join().expect("what was shown")
}

/// Returns what a terminal got without the sequences that are ours: colours, and those that draw lines again.
fn without_own(text: &str) -> String {
    const OWN: &[&str] = &[
        "[0m", "[1m", "[2m", "[31m", "[32m", "[33m", "[34m", "[1;31m", "[1;33m", "[1;34m", "[35m",
        "[36m", "[2K", "[1A", "[?2004h", "[?2004l", "[?25l", "[?25h", "[K", "[J", "[6n",
    ];
    let mut out = String::new();
    for (idx, piece) in text.split('\u{1b}').enumerate() {
        let own = OWN.iter().find(|own| idx > 0 && piece.starts_with(**own));
        match own {
            Some(own) => out.push_str(&piece[own.len()..]),
            None if idx > 0 => out.push_str(&format!("<ESC>{piece}")),
            None => out.push_str(piece),
        }
    }
    // A terminal ends lines so; a live line is drawn from its start.
    out.replace("\r\n", "\n").replace("\n\r", "\n")
}

#[track_caller]
fn clean(what: &str, text: &str) {
    let text = without_own(text);
    let text = text.trim_start_matches('\r');
    let found = text.char_indices().find(|(at, char)| match char {
        '\n' | '\t' => false,
        // Live lines start again; what is on them was checked like the rest.
        '\r' => text[at + 1..].starts_with('y'),
        '\u{200d}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        char => char.is_control(),
    });
    assert_eq!(found, None, "{what}: {text:?}");
    assert!(!text.contains("<ESC>"), "{what}: {text:?}");
}

/// Commands that show what a run holds. `RUN` and `WAIT` are its ids.
const COMMANDS: &[&[&str]] = &[
    &["waits", "list"],
    &["waits", "list", "--json"],
    &["waits", "show", "WAIT"],
    &["waits", "show", "WAIT", "--json"],
    &["runs", "list"],
    &["runs", "show", "RUN"],
    &["runs", "show", "RUN", "--json"],
    &["runs", "events", "RUN"],
    &["runs", "events", "RUN", "--json"],
    &["runs", "verify"],
    &["runs", "diff", "RUN", "RUN", "--all"],
    &["runs", "export", "RUN", "run.edn"],
    &["runs", "resume", "RUN"],
    &["check", "flow.edn"],
    &["run", "flow.edn"],
    &["run", "flow.edn", "--json"],
];

#[test]
fn a_terminal_gets_no_control_characters_of_a_run() {
    for (text, shown) in HOSTILE {
        let scratch = Scratch::new();
        scratch.write("flow.edn", flow(text));
        let began = on_terminal(&scratch, &["run", "flow.edn"], "");
        clean(&format!("run {text:?}"), &began);
        assert!(began.contains(shown), "{shown}: {began:?}");
        let waits = scratch.json_of(&["waits", "list"]);
        let wait = &waits["waits"][0];
        let (id, run) = (wait["id"].as_str(), wait["run"].as_str());
        let (id, run) = (id.expect("an id"), run.expect("a run"));
        for command in COMMANDS {
            let args: Vec<&str> = command
                .iter()
                .map(|arg| match *arg {
                    "RUN" => run,
                    "WAIT" => id,
                    other => other,
                })
                .collect();
            let seen = on_terminal(&scratch, &args, "");
            clean(&format!("{args:?} {text:?}"), &seen);
        }
        let asked = on_terminal(&scratch, &["waits", "show", id], "");
        assert!(asked.contains(shown), "{shown}: {asked:?}");
        assert!(asked.contains("Pay 9000!"), "{asked:?}");
    }
}

#[test]
fn the_prompt_shows_values_and_errors_so() {
    for (text, shown) in HOSTILE {
        let scratch = Scratch::new();
        let value = escaped(text);
        let typed = format!("{value}\n(println {value})\n(throw (ex-info {value} {{}}))\nexit\n");
        let seen = on_terminal(&scratch, &["repl"], &typed);
        let shown = seen.matches(shown).count();
        // Values are printed with `\b` and `\r`, as ever.
        let least = if text.contains(['\u{8}', '\r']) { 2 } else { 3 };
        assert!(shown >= least, "{shown}: {seen:?}");
        for own in [
            "\u{1b}[8m",
            "\u{1b}[2J",
            "\u{1b}]",
            "\u{9b}",
            "\u{202e}",
            "\u{2066}",
        ] {
            assert!(!seen.contains(own), "{seen:?}");
        }
    }
}

#[test]
fn names_and_arguments_are_shown_so() {
    let scratch = Scratch::new();
    for (text, _) in HOSTILE.iter().filter(|(text, _)| !text.contains('/')) {
        let name = format!("flow{text}.edn");
        scratch.write(&name, "{:slug :named :flow '(+ 1 }");
        for args in [
            &["check", name.as_str()][..],
            &["run", &name],
            &["run", "gone", "--input", text],
            &["runs", "show", text],
            &["waits", "show", text],
            &["resources", "get", text],
        ] {
            clean(&format!("{args:?}"), &on_terminal(&scratch, args, ""));
        }
    }
    clean("check .", &on_terminal(&scratch, &["check", "."], ""));
}

#[test]
fn questions_are_shown_so() {
    let scratch = Scratch::new();
    let label = escaped("Amount\u{1b}[8m hidden");
    let flow = format!(
        "{{:slug :asks :invocations {{:default {{:inputs [{{:name :amount :label {label} :type :text :required true}}]}}}} :flow '(:amount (flow/input))}}"
    );
    scratch.write("flow.edn", flow);
    let seen = on_terminal(&scratch, &["run", "flow.edn"], "12\n");
    assert!(seen.contains(r"Amount\x1b[8m hidden: "), "{seen:?}");
    clean("a question", &seen);
}

#[test]
fn a_pipe_gets_data_as_it_is() {
    let scratch = Scratch::new();
    for (text, _) in HOSTILE {
        let value = escaped(text);
        scratch.write("flow.edn", format!("{{:slug :exact :flow '{value}}}"));
        let out = scratch.run(&["run", "flow.edn", "--quiet"]).ok();
        assert!(out.contains(text), "{text:?}: {out:?}");
        let json = scratch.json_of(&["run", "flow.edn", "--quiet"]);
        assert_eq!(json["result"], *text);
        let out = scratch.run(&["eval", &format!("(print {value})")]).ok();
        assert!(out.contains(text), "{text:?}: {out:?}");
    }
}
