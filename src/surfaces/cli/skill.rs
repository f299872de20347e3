//! `flowstone skill`: the playbook of the build kit.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use flowstone_fronts::kit::playbook;
use serde_json::json;

use super::args::Skill;
use super::exit::Exit;
use super::home::Project;
use super::output;
use super::report::Report;

/// The name of the file that agents read.
const FILE: &str = "SKILL.md";

/// Performs the command.
pub fn run(args: &Skill) -> Exit {
    let done = match args.write {
        true => write(args),
        false => {
            match args.json {
                true => output::json(&json!({"name": playbook::NAME, "text": playbook::TEXT})),
                false => output::data(playbook::TEXT),
            }
            Ok(Exit::Completed)
        }
    };
    done.unwrap_or_else(|report| {
        output::failure(&report, args.json);
        Exit::Failed
    })
}

fn write(args: &Skill) -> Result<Exit, Report> {
    let root = Project::find(&args.home).root;
    let mut files = Vec::new();
    for folder in playbook::FOLDERS {
        let folder = root.join(folder).join(playbook::NAME);
        let file = written(&folder).map_err(|error| {
            let folder = folder.display();
            Report::error(
                "E1530",
                format!("the skill cannot be written to {folder}: {error}"),
            )
        })?;
        files.push(
            file.strip_prefix(&root)
                .unwrap_or(&file)
                .display()
                .to_string(),
        );
    }
    match args.json {
        true => output::json(&json!({"name": playbook::NAME, "files": files})),
        false => files
            .iter()
            .for_each(|file| output::data(&format!("{file}\n"))),
    }
    Ok(Exit::Completed)
}

fn written(folder: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let file = folder.join(FILE);
    fs::write(&file, playbook::TEXT)?;
    Ok(file)
}
