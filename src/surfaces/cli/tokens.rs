//! `flowstone tokens`: creates, lists and revokes the access tokens of the server.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, builder::PossibleValue};
use flowstone_engine::token::{Scope, Token, TokenKind, TokenLimits};
use flowstone_engine::tokens::{DEFAULT_TTL, NewToken};
use flowstone_engine::{Engine, EngineError};
use serde_json::json;

use super::args::Home;
use super::exit::Exit;
use super::home::Project;
use super::outcome::of_engine_error;
use super::report::Report;
use super::runtime::Runtime;
use super::table::{Column, table};
use super::{App, Open, duration, output};
use crate::json::token_json;

/// Creates, lists and revokes access tokens of the server
///
/// Every request to `flowstone serve --listen` needs a token, also on this machine. Commands on this machine use the
/// owner's token, which the first start of the server writes to `.flowstone/owner.token`.
#[derive(Debug, Args)]
pub struct Tokens {
    #[command(subcommand)]
    pub command: TokensCommand,
}

#[derive(Debug, Subcommand)]
pub enum TokensCommand {
    Create(Box<TokensCreate>),
    List(TokensList),
    Revoke(TokensRevoke),
}

/// Creates a token and prints it, once
///
/// Only a digest of the token is stored, so it cannot be shown again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone tokens create --name ci --scope run --scope read
  flowstone tokens create --name approvals --scope approve --role finance --flow 'expense-*' --expires 30d
  flowstone tokens create --name worker-1 --scope work --job-type render --json
  flowstone tokens create --name acme --scope edit --scope run --scope read --workspace acme")]
pub struct TokensCreate {
    /// The token's name in lists, logs and decisions
    #[arg(long, value_name = "NAME")]
    pub name: String,

    /// The kind of holder that the token is for
    #[arg(long, value_enum, default_value_t = Kind(TokenKind::Service), value_name = "KIND")]
    pub kind: Kind,

    /// A right of the token; may be repeated [default: those of the kind; a service needs at least one]
    #[arg(long = "scope", value_enum, value_name = "SCOPE")]
    pub scopes: Vec<Right>,

    /// Only flows with this slug, in which `*` stands for any text; may be repeated
    #[arg(long = "flow", value_name = "SLUG")]
    pub flows: Vec<String>,

    /// Only flows with this tag; may be repeated
    #[arg(long = "label", value_name = "TAG")]
    pub labels: Vec<String>,

    /// Only resources, tables and keys whose names begin with this; may be repeated
    #[arg(long = "resource", value_name = "PREFIX")]
    pub resources: Vec<String>,

    /// Only jobs of this type; may be repeated
    #[arg(long = "job-type", value_name = "TYPE")]
    pub job_types: Vec<String>,

    /// The workspace that the token belongs to: it reaches the installations there, and nothing else [default: default]
    #[arg(long, value_name = "NAME")]
    pub workspace: Option<String>,

    /// A role with which the token decides waits; may be repeated
    #[arg(long = "role", value_name = "ROLE")]
    pub roles: Vec<String>,

    /// The person that a token of kind `user` represents
    #[arg(long, value_name = "ID")]
    pub subject: Option<String>,

    /// When it expires: a duration such as 12h or 30d, or `never` [default: 90d]
    #[arg(long, value_name = "DURATION|never", value_parser = expiry)]
    pub expires: Option<Expiry>,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object, with the token
    #[arg(long)]
    pub json: bool,
}

/// Lists the tokens, without their secrets
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone tokens list
  flowstone tokens list --json")]
pub struct TokensList {
    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Revokes a token: the server no longer accepts it
#[derive(Debug, Args)]
#[command(after_help = "Example:
  flowstone tokens revoke 3f9a0c5512ab")]
pub struct TokensRevoke {
    /// The token's id, its second part
    pub id: String,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// A kind of token as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind(pub TokenKind);

impl ValueEnum for Kind {
    fn value_variants<'a>() -> &'a [Kind] {
        const ALL: &[Kind] = &[
            Kind(TokenKind::Anon),
            Kind(TokenKind::Owner),
            Kind(TokenKind::Service),
            Kind(TokenKind::User),
        ];
        ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

/// A scope as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right(pub Scope);

impl ValueEnum for Right {
    fn value_variants<'a>() -> &'a [Right] {
        const ALL: &[Right] = &[
            Right(Scope::Admin),
            Right(Scope::Approve),
            Right(Scope::Edit),
            Right(Scope::Read),
            Right(Scope::Run),
            Right(Scope::Work),
        ];
        ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

/// When a token expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    After(Duration),
    Never,
}

fn expiry(text: &str) -> Result<Expiry, String> {
    match text {
        "never" => Ok(Expiry::Never),
        text => duration::parse(text).map(Expiry::After),
    }
}

/// Performs the command.
pub fn run(args: &Tokens, app: &dyn App) -> Exit {
    let (done, as_json) = match &args.command {
        TokensCommand::Create(args) => (create(args, app), args.json),
        TokensCommand::List(args) => (list(args, app), args.json),
        TokensCommand::Revoke(args) => (revoke(args, app), args.json),
    };
    match done {
        Ok(()) => Exit::Completed,
        Err(report) => {
            output::failure(&report, as_json);
            Exit::Failed
        }
    }
}

fn create(args: &TokensCreate, app: &dyn App) -> Result<(), Report> {
    let new = NewToken {
        name: args.name.clone(),
        kind: args.kind.0,
        scopes: args.scopes.iter().map(|right| right.0).collect(),
        limits: TokenLimits {
            flows: args.flows.clone(),
            labels: args.labels.clone(),
            resources: args.resources.clone(),
            job_types: args.job_types.clone(),
            workspace: args.workspace.clone(),
        },
        roles: args.roles.clone(),
        subject: args.subject.clone(),
        ttl: match args.expires {
            None => Some(DEFAULT_TTL),
            Some(Expiry::After(ttl)) => Some(ttl),
            Some(Expiry::Never) => None,
        },
    };
    let (token, text) = ask(app, &args.home, Open::OrMake, async |engine| {
        engine.create_token(new, None).await
    })?;
    if args.json {
        let mut json = token_json(&token);
        json["ok"] = json!(true);
        json["token"] = json!(text.reveal());
        output::json(&json);
    } else {
        output::data(&text.reveal());
        output::note("this is shown once; store it where only its user can read it");
    }
    Ok(())
}

fn list(args: &TokensList, app: &dyn App) -> Result<(), Report> {
    let tokens = match Project::find(&args.home).home.is_dir() {
        true => ask(app, &args.home, Open::Existing, async |engine| {
            engine.tokens(None).await
        })?,
        false => Vec::new(),
    };
    if args.json {
        let tokens: Vec<_> = tokens.iter().map(token_json).collect();
        output::json(&json!({"ok": true, "tokens": tokens}));
        return Ok(());
    }
    list_table(tokens.iter().map(row).collect());
    Ok(())
}

/// Prints tokens, each as a row with these cells.
pub fn list_table(rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        output::note("no tokens");
        return;
    }
    let columns = [
        Column::Whole("id"),
        Column::Cut("name"),
        Column::Whole("kind"),
        Column::Cut("scopes"),
        Column::Extra("limits"),
        Column::Extra("expires"),
        Column::Extra("used"),
    ];
    output::data(&table(&columns, rows));
}

fn row(token: &Token) -> Vec<String> {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.name()).collect();
    let limits = &token.limits;
    let limits = [
        &limits.flows,
        &limits.labels,
        &limits.resources,
        &limits.job_types,
    ];
    let limits: Vec<&str> = limits.into_iter().flatten().map(String::as_str).collect();
    let at = |ms: Option<i64>| ms.map(flowstone_engine::codec::instant);
    vec![
        token.id.clone(),
        token.name.clone(),
        token.kind.name().to_owned(),
        scopes.join(" "),
        match limits.is_empty() {
            true => "-".to_owned(),
            false => limits.join(" "),
        },
        match token.revoked_ms {
            Some(_) => "revoked".to_owned(),
            None => at(token.expires_ms).unwrap_or_else(|| "never".to_owned()),
        },
        at(token.used_ms).unwrap_or_else(|| "-".to_owned()),
    ]
}

fn revoke(args: &TokensRevoke, app: &dyn App) -> Result<(), Report> {
    ask(app, &args.home, Open::Existing, async |engine| {
        engine.revoke_token(&args.id, None).await
    })?;
    match args.json {
        true => output::json(&json!({"ok": true, "revoked": args.id})),
        false => output::note(&format!("the token {} is revoked", args.id)),
    }
    Ok(())
}

fn ask<T>(
    app: &dyn App,
    home: &Home,
    open: Open,
    question: impl AsyncFnOnce(&Engine) -> Result<T, EngineError>,
) -> Result<T, Report> {
    Runtime::start()?.block_on(async {
        let engine = app.open(&Project::find(home), open)?;
        let answer = question(&engine).await;
        answer.map_err(|error| of_engine_error(&error))
    })
}
