//! `flowstone flows test`: the tool `test_run` of the build kit as a command.

use flowstone_engine::json::read_strictly;
use flowstone_fronts::kit::tools::test_run;
use serde_json::{Value as Json, json};

use crate::cli::args::{FlowsTest, Kit};
use crate::cli::exit::Exit;
use crate::cli::report::Report;
use crate::cli::{App, kit, output};

/// The tool that is called.
pub(in crate::cli) const TOOL: &str = test_run::TOOL.name;
/// The code of an input that cannot be read.
const BAD_INPUT: &str = "E1510";

pub(super) fn test(args: &FlowsTest, app: &'static dyn App) -> Result<Exit, Report> {
    let arguments = arguments(args)?;
    let called = Kit {
        name: TOOL.to_owned(),
        approval: None,
        flow: Some(args.slug.clone()),
        json: Some(arguments.to_string()),
        // A dry test changes nothing, so nobody has to agree.
        yes: args.yes || args.dry,
        permissions: Vec::new(),
        enabled: Vec::new(),
        home: args.home.clone(),
    };
    let called = kit::called(&called, app)?;
    let called = called.map_err(|error| error.to_json());
    Ok(tell(called.as_ref(), args))
}

/// Prints the answer of the tool, or its error, and returns the exit code.
pub(in crate::cli) fn tell(called: Result<&Json, &Json>, args: &FlowsTest) -> Exit {
    let answer = match called {
        Ok(answer) => answer,
        Err(error) => {
            match args.json {
                true => output::json(error),
                false => output::failure(&refused(error), false),
            }
            return kit::exit_of(error);
        }
    };
    let verdict = answer["verdict"].as_str().unwrap_or_default();
    let is_well = match verdict {
        "pass" => true,
        "unconfirmed" => args.expect_tool.is_none(),
        _ => false,
    };
    match args.json {
        true => output::json(answer),
        false => output::data(&text(answer, verdict)),
    }
    match is_well {
        true => Exit::Completed,
        false => Exit::Failed,
    }
}

/// Returns the arguments of the tool.
pub(in crate::cli) fn arguments(args: &FlowsTest) -> Result<Json, Report> {
    let wrong = |why: String| Report::error(BAD_INPUT, why);
    let mut inputs = read_strictly(&args.input)
        .map_err(|error| wrong(format!("`--input` is not JSON: {error}")))?;
    let Some(members) = inputs.as_object_mut() else {
        return Err(wrong("`--input` must be a JSON object".to_owned()));
    };
    if let Some(message) = &args.message {
        let messages = json!([{"role": "user", "content": message}]);
        members.insert("messages".to_owned(), messages);
    }
    let mut arguments = json!({"inputs": inputs});
    if let Some(tool) = &args.expect_tool {
        arguments["expectations"] = json!({"terminal_tool": tool});
    }
    if args.dry {
        arguments["dry"] = json!(true);
    }
    Ok(arguments)
}

/// Returns an error of the kit as a person reads it.
fn refused(error: &Json) -> Report {
    let text = |key: &str| error[key].as_str().unwrap_or_default();
    let report = Report::error("E1511", format!("{}: {}", text("code"), text("message")));
    let approve = error["details"]["command"].as_str();
    match (approve, error["next_step"].as_str()) {
        // A person reads this, so the call is theirs to agree to.
        (Some(command), _) => report
            .hint("agree to it with `--yes`, or leave changes out with `--dry`")
            .hint(format!("or have it approved, and repeat it: {command}")),
        (None, Some(step)) => report.hint(step),
        (None, None) => report,
    }
}

/// Returns the answer as a person reads it.
fn text(answer: &Json, verdict: &str) -> String {
    let mut text = verdict.to_owned();
    if let Some(reason) = answer["verdict_reason"].as_str() {
        text += &format!(": {reason}");
    }
    text.push('\n');
    for tool in answer["tools"].as_array().into_iter().flatten() {
        let name = tool["name"].as_str().unwrap_or_default();
        let returned = match tool["returned"].as_bool() {
            Some(true) => "returned",
            _ => "did not return",
        };
        text += &format!("  {name} {returned}\n");
    }
    let said = answer["output"].as_str().unwrap_or_default();
    if !said.is_empty() {
        text += &format!("\n{said}\n\n");
    }
    let id = answer["test_id"].as_str().unwrap_or_default();
    text + &format!("see what it did: flowstone runs show {id}\n")
}
