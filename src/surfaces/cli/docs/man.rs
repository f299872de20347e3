//! `flowstone docs man`: manual pages, made from the same description of the commands as their help.

use std::fs;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;

use super::super::args::{Cli, DocsMan};
use super::super::exit::Exit;
use super::super::output;
use super::super::report::Report;

/// The code of a command that does not exist.
const NO_COMMAND: &str = "E1591";
/// The code of a folder or file that cannot be written.
const UNWRITABLE: &str = "E0927";

/// Prints the page of a command, or writes all pages.
pub fn print(args: &DocsMan) -> Result<Exit, Report> {
    let mut whole = Cli::whole();
    whole.build();
    if let Some(folder) = &args.to {
        let count = write_all(&whole, folder)?;
        output::note(&format!("wrote {count} pages to {}", folder.display()));
        return Ok(Exit::Completed);
    }
    let mut command = &whole;
    for name in &args.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            let message = format!("there is no command `flowstone {}`", args.command.join(" "));
            Report::error(NO_COMMAND, message).hint("`flowstone --help` lists the commands")
        })?;
    }
    output::whole(&page(command)?);
    Ok(Exit::Completed)
}

fn write_all(whole: &Command, folder: &Path) -> Result<usize, Report> {
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    let mut rest = vec![whole];
    let mut count = 0;
    while let Some(command) = rest.pop() {
        let file = folder.join(Man::new(command.clone()).get_filename());
        fs::write(&file, page(command)?).map_err(|error| unwritable(&file, &error))?;
        count += 1;
        rest.extend(command.get_subcommands().filter(|it| is_shown(it)));
    }
    Ok(count)
}

/// Tells whether a command has a page. Each group has a command `help`, too.
fn is_shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

fn page(command: &Command) -> Result<String, Report> {
    let mut page = Vec::new();
    let man = Man::new(command.clone());
    man.render(&mut page)
        .map_err(|error| Report::error(UNWRITABLE, format!("a page cannot be made: {error}")))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn unwritable(path: &Path, error: &std::io::Error) -> Report {
    let message = format!("{} cannot be written: {error}", path.display());
    Report::error(UNWRITABLE, message)
}
