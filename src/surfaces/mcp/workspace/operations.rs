//! The tools of the workspace as data: names, scopes, routes and arguments.

use flowstone_engine::token::Scope;

use super::{Call, Operation, Param};

const fn text(name: &'static str, doc: &'static str) -> Param {
    Param {
        name,
        kind: "string",
        doc,
        is_required: false,
    }
}

const fn typed(name: &'static str, kind: &'static str, doc: &'static str) -> Param {
    Param {
        name,
        kind,
        doc,
        is_required: false,
    }
}

impl Param {
    const fn needed(self) -> Param {
        Param {
            is_required: true,
            ..self
        }
    }
}

const CURSOR: Param = text("cursor", "`next` of the previous page.");
const LIMIT: Param = typed("limit", "integer", "Maximum number of items on a page.");
const RUN: Param = text("id", "The id of the run.").needed();
const SLUG: Param = text("slug", "The slug of the flow.").needed();
const WAIT: Param = text("id", "The id of the wait.").needed();
const JOB: Param = text("id", "The id of the job.").needed();
const LEASE: Param = text("lease", "`lease.token` of the job as it was claimed.").needed();
const DIGEST: Param = text(
    "digest",
    "The digest that the wait shows: refused if it has changed.",
);

/// All tools, sorted.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        name: "connections_list",
        doc: "Lists the connections of the project by name and type, without secrets.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/connections"),
        params: &[],
    },
    Operation {
        name: "docs_find",
        doc: "Finds pages of Flowstone's documentation by words.",
        scope: Scope::Read,
        call: Call::Docs("docs/find"),
        params: &[text("query", "The words to search for.").needed(), LIMIT],
    },
    Operation {
        name: "docs_show",
        doc: "Shows a page of Flowstone's documentation, or one of its sections.",
        scope: Scope::Read,
        call: Call::Docs("docs/show"),
        params: &[
            text("page", "The page, such as `guide/steps` or `errors/E0420`.").needed(),
            text("section", "A heading of the page."),
        ],
    },
    Operation {
        name: "events_publish",
        doc: "Publishes an event: waits for it are answered, and flows with a trigger for it start.",
        scope: Scope::Run,
        call: Call::Post("/api/v1/events"),
        params: &[
            text("name", "The name of the event.").needed(),
            typed("payload", "object", "The data of the event.").needed(),
            text("key", "The key of the event."),
            text(
                "dedup",
                "A name for this event; a second event with the same name does nothing.",
            ),
        ],
    },
    Operation {
        name: "feedback_send",
        doc: "Stores a note for the people of the project in the table `feedback`.",
        scope: Scope::Edit,
        call: Call::Step("feedback/send"),
        params: &[
            text("message", "The note.").needed(),
            text("title", "The subject, in a few words."),
            text("flow", "The slug of the flow that it is about."),
        ],
    },
    Operation {
        name: "flows_check",
        doc: "Checks a flow in its file, or another text for it. Nothing is run or stored.",
        scope: Scope::Edit,
        call: Call::Post("/api/v1/flows/{slug}/check"),
        params: &[
            SLUG,
            text("source", "The text to check instead of the file."),
        ],
    },
    Operation {
        name: "flows_list",
        doc: "Lists the flows of the project.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/flows"),
        params: &[LIMIT, CURSOR],
    },
    Operation {
        name: "flows_pull",
        doc: "Returns the text of a flow, or of its draft.",
        scope: Scope::Read,
        call: Call::Source,
        params: &[
            SLUG,
            text(
                "source",
                "`active` for the served flow, `live` for the released version, `draft` or `latest` for the newest.",
            ),
            typed(
                "version",
                "integer",
                "The number of a version in the registry, instead of `source`.",
            ),
        ],
    },
    Operation {
        name: "flows_push_draft",
        doc: "Commits the text of a flow to the registry as its newest version, the draft, if it has no errors. What is released and the file of the flow are not changed.",
        scope: Scope::Edit,
        call: Call::Push,
        params: &[
            text("flow_literal", "The whole text of the flow, one EDN map.").needed(),
            typed(
                "base",
                "integer",
                "The version that the text was made from; needed once the flow has versions.",
            ),
            text("message", "What changed; derived if it is left out."),
        ],
    },
    Operation {
        name: "flows_run",
        doc: "Starts a run of a flow. With `wait`, returns it when it has ended, or in its state after that time.",
        scope: Scope::Run,
        call: Call::Post("/api/v1/flows/{slug}/runs"),
        params: &[
            SLUG,
            typed("input", "object", "The input of the run."),
            text("invocation", "The flow's invocation to call."),
            text(
                "id",
                "A name of your own: the same one starts one run only.",
            ),
            text(
                "target",
                "`live` or `draft`: the released or the newest version.",
            ),
            typed(
                "version",
                "integer",
                "The number of a version, instead of `target`.",
            ),
            text("wait", "How long to wait for the end, such as `30s`."),
        ],
    },
    Operation {
        name: "flows_show",
        doc: "Shows the inputs of a flow and how it is started.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/flows/{slug}"),
        params: &[SLUG],
    },
    Operation {
        name: "flows_versions",
        doc: "Lists the versions of a flow: the one that is served, and those of its runs.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/flows/{slug}/versions"),
        params: &[SLUG, LIMIT, CURSOR],
    },
    Operation {
        name: "jobs_claim",
        doc: "Leases queued jobs. Each call about a job names the token of its lease.",
        scope: Scope::Work,
        call: Call::Post("/api/v1/jobs/claim"),
        params: &[
            typed("types", "array", "Types of jobs.").needed(),
            text("worker", "Your name, shown with your jobs.").needed(),
            typed("max", "integer", "Maximum number of jobs, up to 100."),
            text("lease", "How long the lease lasts, such as `30s`."),
            text(
                "wait",
                "How long to wait where no job is queued, up to `30s`.",
            ),
        ],
    },
    Operation {
        name: "jobs_complete",
        doc: "Completes a job that you have leased.",
        scope: Scope::Work,
        call: Call::Post("/api/v1/jobs/{id}/complete"),
        params: &[
            JOB,
            LEASE,
            typed("result", "object", "The result of the job."),
            text("status", "`succeeded` or `no_changes`."),
        ],
    },
    Operation {
        name: "jobs_fail",
        doc: "Reports that a job failed. It is queued again, unless `retry` is false.",
        scope: Scope::Work,
        call: Call::Post("/api/v1/jobs/{id}/fail"),
        params: &[
            JOB,
            LEASE,
            typed(
                "error",
                "object",
                "The error: its `message`, and optionally `kind` and `data`.",
            )
            .needed(),
            typed("retry", "boolean", "Whether the job is retried."),
        ],
    },
    Operation {
        name: "jobs_list",
        doc: "Lists jobs, newest first.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/jobs"),
        params: &[
            text("type", "The type of the jobs."),
            text("status", "Such as `queued`, `claimed` or `failed`."),
            text("batch", "The batch of the jobs."),
            text("run", "The run that submitted them."),
            LIMIT,
            CURSOR,
        ],
    },
    Operation {
        name: "jobs_progress",
        doc: "Extends the lease of a job, and records its progress. The response says whether to stop.",
        scope: Scope::Work,
        call: Call::Post("/api/v1/jobs/{id}/progress"),
        params: &[
            JOB,
            LEASE,
            typed("progress", "object", "The progress of the job."),
            text("extend", "How long the lease lasts from now, such as `1m`."),
        ],
    },
    Operation {
        name: "jobs_show",
        doc: "Shows a job.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/jobs/{id}"),
        params: &[JOB],
    },
    Operation {
        name: "resources_delete",
        doc: "Deletes a stored resource.",
        scope: Scope::Edit,
        call: Call::Delete("/api/v1/resources"),
        params: &[
            text("uri", "Its name, `res://...`.").needed(),
            typed(
                "force",
                "boolean",
                "Whether it is deleted although an unfinished run needs it.",
            ),
        ],
    },
    Operation {
        name: "resources_list",
        doc: "Lists the stored resources of the project.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/resources"),
        params: &[
            text("types", "Types of resources, separated by commas."),
            text("prefix", "The beginning of names."),
            text("run", "The run that stored them."),
            LIMIT,
            CURSOR,
        ],
    },
    Operation {
        name: "resources_read",
        doc: "Returns the contents of a stored resource.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/resources/content"),
        params: &[text("uri", "Its name, `res://...`.").needed()],
    },
    Operation {
        name: "resources_url",
        doc: "Creates a link to a stored resource, for people without a token.",
        scope: Scope::Read,
        call: Call::Post("/api/v1/resources/url"),
        params: &[
            text("uri", "Its name, `res://...`.").needed(),
            typed(
                "ttl",
                "integer",
                "How long the link is good for, in seconds.",
            ),
        ],
    },
    Operation {
        name: "runs_cancel",
        doc: "Cancels a run and executes its cleanup. With `force`, the run ends at once.",
        scope: Scope::Run,
        call: Call::Post("/api/v1/runs/{id}/cancel"),
        params: &[
            RUN,
            text("reason", "The reason."),
            typed("force", "boolean", "Whether the run ends without cleanup."),
        ],
    },
    Operation {
        name: "runs_diff",
        doc: "Compares two runs by their journals.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/runs/{id}/diff/{other}"),
        params: &[
            RUN,
            text("other", "The id of the other run.").needed(),
            typed("all", "boolean", "Whether equal steps are listed, too."),
        ],
    },
    Operation {
        name: "runs_events",
        doc: "Lists the journal of a run: what its steps requested and returned.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/runs/{id}/journal"),
        params: &[
            RUN,
            typed("after", "integer", "`next` of the previous page."),
            LIMIT,
        ],
    },
    Operation {
        name: "runs_fork",
        doc: "Starts a run with the results of another one, up to a step.",
        scope: Scope::Run,
        call: Call::Post("/api/v1/runs/{id}/fork"),
        params: &[
            RUN,
            text("at", "The first step that the fork performs itself."),
            typed(
                "set",
                "object",
                "Values to change, by `input.name` or the path of a step.",
            ),
            typed(
                "reuse",
                "boolean",
                "Whether later results are reused if their requests are the same.",
            ),
        ],
    },
    Operation {
        name: "runs_list",
        doc: "Lists runs, newest first.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/runs"),
        params: &[
            text("flow", "The slug of a flow."),
            text(
                "status",
                "Statuses, separated by commas, such as `running,waiting`.",
            ),
            text("since", "An instant, or how long ago, such as `2h`."),
            text("until", "An instant, or how long ago."),
            text("key", "The concurrency key."),
            text("text", "Words of the input, the result or the error."),
            LIMIT,
            CURSOR,
        ],
    },
    Operation {
        name: "runs_resume",
        doc: "Releases a run that is on hold or in quarantine.",
        scope: Scope::Run,
        call: Call::Post("/api/v1/runs/{id}/resume"),
        params: &[RUN],
    },
    Operation {
        name: "runs_show",
        doc: "Shows a run. With `full`, also its steps and waits; with `step`, one of its steps.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/runs/{id}"),
        params: &[
            RUN,
            typed("full", "boolean", "Whether its steps are shown."),
            text("step", "The path of a step."),
        ],
    },
    Operation {
        name: "schedules_list",
        doc: "Lists the schedules of the project and when they are due.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/schedules"),
        params: &[],
    },
    Operation {
        name: "schedules_run",
        doc: "Starts the run of a schedule now.",
        scope: Scope::Run,
        call: Call::Post("/api/v1/schedules/{flow}/{id}/run"),
        params: &[
            text("flow", "The slug of the flow.").needed(),
            text("id", "The id of the schedule.").needed(),
        ],
    },
    Operation {
        name: "search",
        doc: "Searches resources, flows, runs and connections.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/search"),
        params: &[
            text("q", "The words to search for.").needed(),
            text("targets", "The targets to search, separated by commas."),
            LIMIT,
        ],
    },
    Operation {
        name: "signals_send",
        doc: "Answers the waits of a key, or keeps the answer for a later wait. Approvals also need the scope `approve`.",
        scope: Scope::Run,
        call: Call::Post("/api/v1/signals"),
        params: &[
            text("key", "The key of the waits.").needed(),
            typed("value", "object", "The answer.").needed(),
            text(
                "dedup",
                "A name for this signal; a second signal with the same name does nothing.",
            ),
        ],
    },
    Operation {
        name: "steps_list",
        doc: "Lists the step types that a flow can use.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/steps"),
        params: &[],
    },
    Operation {
        name: "steps_schema",
        doc: "Returns the JSON Schema of a step type's config.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/steps/{type}/schema"),
        params: &[text("type", "The type, such as `http`.").needed()],
    },
    Operation {
        name: "tables_query",
        doc: "Queries a table.",
        scope: Scope::Read,
        call: Call::Post("/api/v1/tables/{name}/query"),
        params: &[
            text("name", "The name of the table.").needed(),
            typed("where", "array", "Conditions, as in a `:table` step."),
            typed("select", "array", "Columns."),
            typed("sort", "array", "Columns to sort by."),
            typed("page", "object", "`limit` and `offset`."),
        ],
    },
    Operation {
        name: "tables_rows",
        doc: "Lists the rows of a table.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/tables/{name}/rows"),
        params: &[
            text("name", "The name of the table.").needed(),
            LIMIT,
            CURSOR,
        ],
    },
    Operation {
        name: "waits_approve",
        doc: "Approves a wait. Use it only for the decision of a person.",
        scope: Scope::Approve,
        call: Call::Post("/api/v1/waits/{id}/approve"),
        params: &[
            WAIT,
            DIGEST,
            text("comment", "A comment to store with the decision."),
            typed(
                "fields",
                "object",
                "The fields that the wait requests in addition to the decision.",
            ),
        ],
    },
    Operation {
        name: "waits_cancel",
        doc: "Cancels a wait: its step fails.",
        scope: Scope::Approve,
        call: Call::Post("/api/v1/waits/{id}/cancel"),
        params: &[WAIT, DIGEST, text("reason", "The reason.")],
    },
    Operation {
        name: "waits_complete",
        doc: "Answers a wait with a value.",
        scope: Scope::Approve,
        call: Call::Post("/api/v1/waits/{id}/complete"),
        params: &[
            WAIT,
            DIGEST,
            typed("value", "object", "The answer.").needed(),
        ],
    },
    Operation {
        name: "waits_list",
        doc: "Lists the waits of runs.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/waits"),
        params: &[
            text("flow", "The slug of a flow."),
            text("run", "The id of a run."),
            text("key", "The key of the wait."),
            text("state", "`open` or `all`."),
            LIMIT,
            CURSOR,
        ],
    },
    Operation {
        name: "waits_reject",
        doc: "Rejects a wait.",
        scope: Scope::Approve,
        call: Call::Post("/api/v1/waits/{id}/reject"),
        params: &[WAIT, DIGEST, text("reason", "The reason.")],
    },
    Operation {
        name: "waits_show",
        doc: "Shows a wait: its question, and how it was answered.",
        scope: Scope::Read,
        call: Call::Get("/api/v1/waits/{id}"),
        params: &[WAIT],
    },
];
