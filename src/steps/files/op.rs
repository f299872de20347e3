//! The operations of `:files`, one file each: their descriptions as data, and their code.

pub(super) mod apply_edit;
pub(super) mod capture;
pub(super) mod delete_file;
pub(super) mod diff;
pub(super) mod history;
pub(super) mod init_changeset;
pub(super) mod list;
pub(super) mod materialize;
pub(super) mod move_file;
pub(super) mod open_change_request;
pub(super) mod publish;
pub(super) mod read;
pub(super) mod replace;
pub(super) mod replace_lines;
pub(super) mod resolve_source;
pub(super) mod search;
pub(super) mod write_file;
pub(super) mod write_out;
