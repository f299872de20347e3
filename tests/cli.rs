//! The command line as a person sees it.

#[cfg(unix)]
mod agent_decisions;
mod agents;
#[cfg(unix)]
mod agents_at_once;
mod agents_broken;
#[cfg(unix)]
mod agents_busy;
#[cfg(unix)]
mod agents_changes;
#[cfg(unix)]
mod agents_context;
#[cfg(unix)]
mod agents_flows;
#[cfg(unix)]
mod agents_http;
#[cfg(unix)]
mod agents_keys;
mod agents_killed;
#[cfg(unix)]
mod agents_knowledge;
mod agents_limits;
mod agents_loop;
#[cfg(unix)]
mod agents_messages;
#[cfg(unix)]
mod agents_moves;
#[cfg(unix)]
mod agents_names;
#[cfg(unix)]
mod agents_numbers;
#[cfg(unix)]
mod agents_openapi;
#[cfg(unix)]
mod agents_pauses;
#[cfg(unix)]
mod agents_platform;
#[cfg(unix)]
mod agents_processes;
#[cfg(unix)]
mod agents_providers;
#[cfg(unix)]
mod agents_quarantine;
#[cfg(unix)]
mod agents_questions;
mod agents_reach;
mod agents_rights;
mod agents_servers;
#[cfg(unix)]
mod agents_sessions;
mod agents_strict;
mod agents_wire;
#[cfg(unix)]
mod api_routes;
mod bad_input;
mod called;
mod check;
mod check_bounds;
mod check_fix;
mod check_portable;
mod check_sarif;
mod connections;
mod docs;
mod docs_blocks;
mod docs_command;
mod doctor;
mod endings;
mod equivalent;
mod error_data;
mod eval;
#[cfg(unix)]
mod events;
#[cfg(unix)]
mod exact_values;
mod feed;
mod fmt;
mod gallery;
mod graph;
#[cfg(unix)]
mod graph_access;
mod graph_arguments;
#[cfg(unix)]
mod graph_called;
#[cfg(unix)]
mod graph_ends;
mod graph_http;
#[cfg(unix)]
mod graph_mcp;
mod graph_published;
mod graph_stream;
mod graph_time;
mod graph_warnings;
mod help;
#[cfg(unix)]
mod hooks;
#[cfg(unix)]
mod hostile;
mod http;
#[cfg(unix)]
mod http_admins;
#[cfg(unix)]
mod http_answers;
#[cfg(unix)]
mod http_bodies;
#[cfg(unix)]
mod http_bulk;
#[cfg(unix)]
mod http_jobs;
#[cfg(unix)]
mod http_limits;
#[cfg(unix)]
mod http_log;
#[cfg(unix)]
mod http_metrics;
#[cfg(unix)]
mod http_outside;
#[cfg(unix)]
mod http_pages_elsewhere;
#[cfg(unix)]
mod http_proxy;
#[cfg(unix)]
mod http_reach;
#[cfg(unix)]
mod http_sweep;
mod import_n8n;
mod install;
#[cfg(unix)]
mod installations;
mod installations_called;
mod installations_reach;
mod installations_served;
mod installations_sides;
mod jobs;
mod kill;
mod kit;
mod kit_agent;
mod kit_doors;
mod kit_killed;
#[cfg(unix)]
mod kit_pages;
#[cfg(unix)]
mod kit_playbook;
mod kit_rules;
mod kit_secrets;
#[cfg(unix)]
mod kit_test_run;
mod kit_triggers;
#[cfg(unix)]
mod kit_waiting;
mod limits;
mod limits_of_functions;
mod log;
#[cfg(unix)]
mod logins;
mod lsp;
mod many;
mod mcp;
#[cfg(unix)]
mod mcp_questions;
mod new;
mod nrepl;
#[cfg(unix)]
mod openapi;
mod packaged;
#[cfg(unix)]
mod pages;
mod permissions;
mod picture;
mod processes;
mod prompt_flows;
mod quarantine;
mod queue;
mod recording;
mod reference;
mod registry;
#[cfg(unix)]
mod remote;
#[cfg(unix)]
mod remote_text;
mod repl;
mod resources;
mod resources_table;
mod resumed;
#[cfg(unix)]
mod rights;
mod run;
mod runs;
#[cfg(unix)]
mod screen;
mod search;
mod secret_inputs;
mod secrets;
mod serve;
mod setup;
mod shared_code;
mod shared_deps;
mod steps;
mod strangers;
mod suspend;
mod system;
#[cfg(unix)]
mod telemetry;
mod test;
mod test_update;
mod tree;
mod tree_commands;
mod tree_elsewhere;
mod tree_reach;
mod tree_walks;
mod waits;
