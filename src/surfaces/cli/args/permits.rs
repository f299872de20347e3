//! Options that grant permissions beyond what the project allows.

use clap::{Args, ValueHint};
use flowstone_flow::permission::{Access, Allow, NetRow, add_flag};

/// Options of commands that execute flows. Each grants a permission for this command only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Permissions")]
pub struct Permits {
    /// Let flows read this file, or this folder and everything in it; may be repeated
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, value_delimiter = ',')]
    pub allow_read: Vec<String>,

    /// Let flows write this file, or this folder and everything in it; may be repeated
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, value_delimiter = ',')]
    pub allow_write: Vec<String>,

    /// Let flows connect to this host, such as 127.0.0.1:8080, *.internal or 10.0.0.0/8; `*` is every host; may be
    /// repeated
    #[arg(long, value_name = "HOST[:PORT]", value_delimiter = ',', value_parser = host)]
    pub allow_net: Vec<String>,

    /// Let flows send this secret to this host, as in crm-token=crm.example.com; may be repeated
    #[arg(long, value_name = "NAME=HOST", value_parser = secret)]
    pub allow_secret: Vec<String>,

    /// Let flows start this program, as the server of a connection; may be repeated
    #[arg(long, value_name = "PROGRAM", value_delimiter = ',')]
    pub allow_run: Vec<String>,

    /// Let flows use this environment variable as a secret; may be repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub allow_env: Vec<String>,

    /// Let flows do everything that the current user may do
    #[arg(long)]
    pub allow_all: bool,
}

impl Permits {
    /// Returns the options as arguments for another process.
    pub fn to_args(&self) -> Vec<String> {
        let mut args = Vec::new();
        for (access, texts) in self.given() {
            for text in texts {
                args.push(format!("{}={text}", access.flag()));
            }
        }
        args.extend(self.allow_all.then(|| "--allow-all".to_owned()));
        args
    }

    fn given(&self) -> [(Access, &Vec<String>); 6] {
        [
            (Access::Read, &self.allow_read),
            (Access::Write, &self.allow_write),
            (Access::Net, &self.allow_net),
            (Access::Secret, &self.allow_secret),
            (Access::Program, &self.allow_run),
            (Access::Env, &self.allow_env),
        ]
    }

    /// Returns the permissions, with their paths resolved by `resolve`.
    pub fn rows(&self, resolve: &dyn Fn(&str) -> std::path::PathBuf) -> Allow {
        if self.allow_all {
            return Allow::everything();
        }
        let mut allow = Allow::default();
        for (access, texts) in self.given() {
            for text in texts {
                // The parsers below have refused what cannot be read.
                add_flag(&mut allow, access, text, resolve).ok();
            }
        }
        allow
    }
}

fn host(text: &str) -> Result<String, String> {
    match NetRow::read(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err(
            "expected a host, such as api.internal, *.internal:8443, 10.0.0.0/8 or [::1]:80"
                .to_owned(),
        ),
    }
}

fn secret(text: &str) -> Result<String, String> {
    add_flag(&mut Allow::default(), Access::Secret, text, &|path| {
        path.into()
    })?;
    Ok(text.to_owned())
}
