//! The description of `:files`, as data: its fields, and the list of its operations.

use flowstone_flow::step::{Effect, Field, FieldType, Operations, StepError, StepSpec};

use super::op::{
    apply_edit, capture, delete_file, diff, history, init_changeset, list, materialize, move_file,
    open_change_request, publish, read, replace, replace_lines, resolve_source, search, write_file,
    write_out,
};

pub(super) const SPEC: StepSpec = StepSpec {
    kind: "files",
    operations: Some(OPERATIONS),
    aliases: &[],
    doc: "Lists, reads, searches and changes the files of a folder or a git repository.\n\n\
        The source becomes an immutable tree first: with `:op :resolve-source`, which returns a reference to use as \
        `:source` of later steps, or automatically, if `:source` is a folder or repository. Changes are made in a \
        changeset, which is based on a tree: `:op :init-changeset` creates one, and its reference is the `:changeset` of \
        later steps. `:op :materialize` writes a tree or a changeset into a folder, and `:op :write-out` a single file. Paths are relative to the source, use `/` and cannot leave it. Files that `.gitignore` leaves \
        out are not part of a folder's tree.",
    fields: FIELDS,
    examples: &[
        "(flow/step :files :tree {:op :resolve-source :source {:type :dir :path \".\"}})",
        "(flow/step :files :rust {:op :list :source {:type :dir :path \".\"} :glob \"**/*.rs\"})",
        "(flow/step :files :todos {:op :search :source {:type :dir :path \".\"} :query \"TODO\" :limit 20})",
        "(let [draft (flow/step :files :draft {:op :init-changeset :source {:type :dir :path \".\"}})]\n  \
           (flow/step :files :note {:op :write-file :changeset draft :path \"NOTES.md\" :content \"# Notes\\n\"}))",
    ],
    effect: Effect::Read,
};

const OPERATIONS: Operations = Operations {
    key: "op",
    code: StepError::OPTION_FIT,
    all: &[
        apply_edit::OPERATION,
        capture::OPERATION,
        delete_file::OPERATION,
        diff::OPERATION,
        history::OPERATION,
        init_changeset::OPERATION,
        list::OPERATION,
        materialize::OPERATION,
        move_file::OPERATION,
        open_change_request::OPERATION,
        publish::OPERATION,
        read::OPERATION,
        replace::OPERATION,
        replace_lines::OPERATION,
        resolve_source::OPERATION,
        search::OPERATION,
        write_file::OPERATION,
        write_out::OPERATION,
    ],
};

const TEXTS: FieldType = FieldType::Either(&[FieldType::Text, FieldType::Items]);

const FIELDS: &[Field] = &[
    Field::optional(
        "all?",
        FieldType::Bool,
        "Whether `:replace` changes every occurrence of `:old`. Default false: it must occur exactly once.",
    ),
    Field::optional(
        "author",
        FieldType::Either(&[FieldType::Text, FieldType::Map]),
        "The author of the commit: `\"Name <email>\"` or `{:name \"...\" :email \"...\"}`. Default: the committer in the settings of git.",
    ),
    Field::optional(
        "base",
        FieldType::Name,
        "The branch, tag or commit that the commit is based on (default: that of the source), or the branch to merge a change request into (default: the default branch of the repository).",
    ),
    Field::optional("body", FieldType::Text, "The text of a change request."),
    Field::optional(
        "branch",
        FieldType::Text,
        "The branch to publish to, or to open a change request for.",
    ),
    Field::optional(
        "case-sensitive?",
        FieldType::Bool,
        "Whether `:search` is case-sensitive. Default false.",
    ),
    Field::optional(
        "changeset",
        FieldType::Either(&[FieldType::Map, FieldType::Text]),
        "The changeset to change or to read: the value of `:init-changeset`, or its URI.",
    ),
    Field::optional(
        "connection",
        FieldType::Name,
        "The connection whose secret is sent to the server. Default: that of the source.",
    ),
    Field::optional(
        "content",
        FieldType::Any,
        "The content to write: text, bytes, or the reference of a stored blob.",
    ),
    Field::optional(
        "context",
        FieldType::Int,
        "The number of lines to return around a match, 0 to 20 (default 0), or around a difference (default 3).",
    ),
    Field::optional(
        "cursor",
        FieldType::Text,
        "The `:next-cursor` of the previous page.",
    ),
    Field::optional(
        "draft?",
        FieldType::Bool,
        "Whether the change request is a draft. Default false.",
    ),
    Field::optional(
        "edits",
        FieldType::List(&apply_edit::EDIT),
        "Replacements to apply in order: `[{:path :old :new}]`, optionally with `:all?`. Without `:old`, `:new` is the content of a new file.",
    ),
    Field::optional(
        "end-line",
        FieldType::Int,
        "The last line to read or to replace.",
    ),
    Field::optional("from", FieldType::Text, "The path of the file to move."),
    Field::optional(
        "glob",
        TEXTS,
        "Patterns such as `**/*.rs`; one without `/` is matched against the file name.",
    ),
    Field::optional(
        "limit",
        FieldType::Int,
        "The maximum number of entries (default 1000), matches or commits (default 100) to return.",
    ),
    Field::optional(
        "max-chars",
        FieldType::Int,
        "The maximum number of characters to read from each file. Default 200000.",
    ),
    Field::optional("message", FieldType::Text, "The message of the commit."),
    Field::optional("new", FieldType::Text, "The text that replaces `:old`."),
    Field::optional(
        "old",
        FieldType::Text,
        "The text to replace, exactly as it is in the file.",
    ),
    Field::required(
        "op",
        FieldType::Name,
        "The operation to perform, see above.",
    ),
    Field::optional(
        "overwrite?",
        FieldType::Bool,
        "Whether `:materialize` replaces existing files with different content, and `:write-out` an existing file. Default false. \
         Other files in the folder stay in either case.",
    ),
    Field::optional(
        "patch",
        FieldType::Text,
        "A unified diff over one or more files, as written by `git diff` and `:diff`.",
    ),
    Field::optional(
        "path",
        FieldType::Text,
        "The file to read or to change; for `:capture`, the folder; for `:write-out`, the file of the project to write.",
    ),
    Field::optional(
        "paths",
        FieldType::Items,
        "The files to read (at most 50), the files and folders to compare, or those whose history to read.",
    ),
    Field::optional(
        "prefix",
        FieldType::Text,
        "Selects only paths with this prefix, such as `src/`.",
    ),
    Field::optional(
        "provider",
        FieldType::OneOf(&["github", "gitlab"]),
        "The kind of server to open the change request on. Default: taken from its host name or the connection's `:backend`.",
    ),
    Field::optional(
        "query",
        FieldType::Text,
        "The text to search for. A match is within one line.",
    ),
    Field::optional(
        "regex?",
        FieldType::Bool,
        "Whether `:query` is a regular expression. Default false.",
    ),
    Field::optional(
        "since",
        FieldType::Name,
        "A tag, a branch or a commit: only commits after it are returned.",
    ),
    Field::optional(
        "source",
        FieldType::Either(&[FieldType::Map, FieldType::Text]),
        "`{:type :dir :path \".\"}` (also `:ignored? true`, `:hidden? false`), `{:type :git :repo \"https://...\" :ref \"main\"}` \
         (also `:connection`, `:timeout`), or the reference or URI of a resolved tree or of a changeset. A source may set \
         `:max-files`, `:max-bytes` and `:max-file-bytes`.",
    ),
    Field::optional(
        "start-line",
        FieldType::Int,
        "The first line to read or to replace, counted from 1.",
    ),
    Field::optional(
        "to",
        FieldType::Text,
        "The new path of the file to move, or the folder of the project to write to; `\".\"` is its root.",
    ),
    Field::optional("title", FieldType::Text, "The title of a change request."),
];
