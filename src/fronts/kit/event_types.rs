//! The events that known systems send: their names, what they are about, and a sample of the attributes of each.

use flowstone_project::webhooks::Sender;
use serde_json::{Value as Json, json};

/// A kind of event.
pub struct EventType {
    /// As the system names it.
    pub name: &'static str,
    pub description: &'static str,
    sample: fn() -> Json,
}

impl EventType {
    /// Returns the attributes of an event of this kind, shortened to the usual members.
    pub fn sample(&self) -> Json {
        (self.sample)()
    }
}

/// Returns the events of a system; none for a system whose events are not known.
pub fn of(sender: Sender) -> &'static [EventType] {
    match sender {
        Sender::Github => GITHUB,
        Sender::Stripe => STRIPE,
        Sender::Slack => SLACK,
        Sender::Signed => &[],
    }
}

/// The names of all events that GitHub sends to webhooks.
pub const GITHUB_NAMES: &[&str] = &[
    "branch_protection_configuration",
    "branch_protection_rule",
    "check_run",
    "check_suite",
    "code_scanning_alert",
    "commit_comment",
    "create",
    "custom_property",
    "custom_property_values",
    "delete",
    "dependabot_alert",
    "deploy_key",
    "deployment",
    "deployment_protection_rule",
    "deployment_review",
    "deployment_status",
    "discussion",
    "discussion_comment",
    "fork",
    "github_app_authorization",
    "gollum",
    "installation",
    "installation_repositories",
    "installation_target",
    "issue_comment",
    "issue_dependencies",
    "issues",
    "label",
    "marketplace_purchase",
    "member",
    "membership",
    "merge_group",
    "meta",
    "milestone",
    "org_block",
    "organization",
    "package",
    "page_build",
    "personal_access_token_request",
    "ping",
    "project",
    "project_card",
    "project_column",
    "projects_v2",
    "projects_v2_item",
    "projects_v2_status_update",
    "public",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "pull_request_review_thread",
    "push",
    "registry_package",
    "release",
    "repository",
    "repository_advisory",
    "repository_dispatch",
    "repository_import",
    "repository_ruleset",
    "repository_vulnerability_alert",
    "secret_scanning_alert",
    "secret_scanning_alert_location",
    "secret_scanning_scan",
    "security_advisory",
    "security_and_analysis",
    "sponsorship",
    "star",
    "status",
    "sub_issues",
    "team",
    "team_add",
    "watch",
    "workflow_dispatch",
    "workflow_job",
    "workflow_run",
];

fn repository() -> Json {
    json!({"full_name": "octo/hello", "private": false, "default_branch": "main"})
}

fn sender() -> Json {
    json!({"login": "ada", "type": "User"})
}

const GITHUB: &[EventType] = &[
    EventType {
        name: "push",
        description: "GitHub: commits were pushed to a branch, or a branch or tag was pushed.",
        sample: || {
            json!({
                "ref": "refs/heads/main",
                "before": "0000000000000000000000000000000000000000",
                "after": "1111111111111111111111111111111111111111",
                "commits": [{"id": "1111111111111111111111111111111111111111", "message": "Fix", "author": {"name": "Ada"}}],
                "repository": repository(),
                "sender": sender(),
            })
        },
    },
    EventType {
        name: "pull_request",
        description: "GitHub: a pull request was opened, closed, merged, edited, labeled or synchronized (`action`).",
        sample: || {
            json!({
                "action": "opened",
                "number": 7,
                "pull_request": {
                    "title": "Fix", "body": "Why", "state": "open", "merged": false, "draft": false,
                    "html_url": "https://github.com/octo/hello/pull/7", "user": sender(),
                    "head": {"ref": "fix", "sha": "1111111111111111111111111111111111111111"}, "base": {"ref": "main"},
                },
                "repository": repository(),
                "sender": sender(),
            })
        },
    },
    EventType {
        name: "pull_request_review",
        description: "GitHub: a review of a pull request was submitted, edited or dismissed (`action`).",
        sample: || {
            json!({
                "action": "submitted",
                "review": {"state": "approved", "body": "Good", "user": sender()},
                "pull_request": {"number": 7, "title": "Fix"},
                "repository": repository(),
                "sender": sender(),
            })
        },
    },
    EventType {
        name: "issues",
        description: "GitHub: an issue was opened, closed, reopened, edited, labeled or assigned (`action`).",
        sample: || {
            json!({
                "action": "opened",
                "issue": {"number": 3, "title": "It fails", "body": "How", "state": "open", "user": sender(), "labels": []},
                "repository": repository(),
                "sender": sender(),
            })
        },
    },
    EventType {
        name: "issue_comment",
        description: "GitHub: a comment on an issue or a pull request was created, edited or deleted (`action`).",
        sample: || {
            json!({
                "action": "created",
                "issue": {"number": 3, "title": "It fails"},
                "comment": {"body": "Me too", "user": sender()},
                "repository": repository(),
                "sender": sender(),
            })
        },
    },
    EventType {
        name: "release",
        description: "GitHub: a release was published, created, edited or deleted (`action`).",
        sample: || {
            json!({
                "action": "published",
                "release": {"tag_name": "v1.0.0", "name": "1.0", "body": "Notes", "prerelease": false},
                "repository": repository(),
                "sender": sender(),
            })
        },
    },
    EventType {
        name: "workflow_run",
        description: "GitHub: a workflow of Actions was requested, began or completed (`action`, `workflow_run.conclusion`).",
        sample: || {
            json!({
                "action": "completed",
                "workflow_run": {"name": "CI", "head_branch": "main", "status": "completed", "conclusion": "failure"},
                "repository": repository(),
                "sender": sender(),
            })
        },
    },
    EventType {
        name: "star",
        description: "GitHub: a repository was starred, or a star was removed (`action`).",
        sample: || {
            json!({
                "action": "created",
                "starred_at": "2026-05-04T09:00:00Z",
                "repository": repository(),
                "sender": sender(),
            })
        },
    },
];

/// Returns an event of Stripe about an object.
fn stripe(kind: &str, object: &Json) -> Json {
    json!({
        "id": "evt_1",
        "object": "event",
        "type": kind,
        "created": 1_777_885_200,
        "livemode": false,
        "data": {"object": object},
    })
}

const STRIPE: &[EventType] = &[
    EventType {
        name: "checkout.session.completed",
        description: "Stripe: a customer completed a checkout, an order was paid.",
        sample: || {
            stripe(
                "checkout.session.completed",
                &json!({"id": "cs_1", "amount_total": 2000, "currency": "eur", "customer": "cus_1", "payment_status": "paid"}),
            )
        },
    },
    EventType {
        name: "payment_intent.succeeded",
        description: "Stripe: a payment succeeded.",
        sample: || {
            stripe(
                "payment_intent.succeeded",
                &json!({"id": "pi_1", "amount": 2000, "currency": "eur", "customer": "cus_1", "status": "succeeded"}),
            )
        },
    },
    EventType {
        name: "payment_intent.payment_failed",
        description: "Stripe: a payment failed.",
        sample: || {
            stripe(
                "payment_intent.payment_failed",
                &json!({"id": "pi_1", "amount": 2000, "currency": "eur", "last_payment_error": {"code": "card_declined"}}),
            )
        },
    },
    EventType {
        name: "invoice.paid",
        description: "Stripe: an invoice was paid.",
        sample: || {
            stripe(
                "invoice.paid",
                &json!({"id": "in_1", "customer": "cus_1", "amount_paid": 2000, "currency": "eur", "status": "paid"}),
            )
        },
    },
    EventType {
        name: "invoice.payment_failed",
        description: "Stripe: the payment of an invoice failed.",
        sample: || {
            stripe(
                "invoice.payment_failed",
                &json!({"id": "in_1", "customer": "cus_1", "amount_due": 2000, "attempt_count": 1, "status": "open"}),
            )
        },
    },
    EventType {
        name: "customer.created",
        description: "Stripe: a customer was created.",
        sample: || {
            stripe(
                "customer.created",
                &json!({"id": "cus_1", "email": "ada@example.com", "name": "Ada"}),
            )
        },
    },
    EventType {
        name: "customer.subscription.created",
        description: "Stripe: a customer subscribed to a plan.",
        sample: || {
            stripe(
                "customer.subscription.created",
                &json!({"id": "sub_1", "customer": "cus_1", "status": "active"}),
            )
        },
    },
    EventType {
        name: "customer.subscription.updated",
        description: "Stripe: the subscription of a customer changed.",
        sample: || {
            stripe(
                "customer.subscription.updated",
                &json!({"id": "sub_1", "customer": "cus_1", "status": "past_due"}),
            )
        },
    },
    EventType {
        name: "customer.subscription.deleted",
        description: "Stripe: the subscription of a customer ended, was cancelled.",
        sample: || {
            stripe(
                "customer.subscription.deleted",
                &json!({"id": "sub_1", "customer": "cus_1", "status": "canceled"}),
            )
        },
    },
    EventType {
        name: "charge.refunded",
        description: "Stripe: a charge was refunded.",
        sample: || {
            stripe(
                "charge.refunded",
                &json!({"id": "ch_1", "amount": 2000, "amount_refunded": 2000, "currency": "eur"}),
            )
        },
    },
    EventType {
        name: "charge.dispute.created",
        description: "Stripe: a customer disputed a charge.",
        sample: || {
            stripe(
                "charge.dispute.created",
                &json!({"id": "dp_1", "charge": "ch_1", "amount": 2000, "reason": "fraudulent", "status": "needs_response"}),
            )
        },
    },
];

/// Returns a callback of Slack with an event.
fn slack(event: &Json) -> Json {
    json!({
        "type": "event_callback",
        "event_id": "Ev1",
        "event_time": 1_777_885_200,
        "team_id": "T1",
        "event": event,
    })
}

const SLACK: &[EventType] = &[
    EventType {
        name: "message",
        description: "Slack: a message was posted to a channel, or sent directly.",
        sample: || {
            slack(
                &json!({"type": "message", "channel": "C1", "channel_type": "channel", "user": "U1", "text": "Hello", "ts": "1777885200.000100"}),
            )
        },
    },
    EventType {
        name: "app_mention",
        description: "Slack: the app was mentioned in a message.",
        sample: || {
            slack(
                &json!({"type": "app_mention", "channel": "C1", "user": "U1", "text": "<@U2> hello", "ts": "1777885200.000100"}),
            )
        },
    },
    EventType {
        name: "reaction_added",
        description: "Slack: somebody reacted to a message with an emoji.",
        sample: || {
            slack(
                &json!({"type": "reaction_added", "user": "U1", "reaction": "eyes", "item": {"type": "message", "channel": "C1", "ts": "1777885200.000100"}}),
            )
        },
    },
    EventType {
        name: "member_joined_channel",
        description: "Slack: a member joined a channel.",
        sample: || {
            slack(
                &json!({"type": "member_joined_channel", "user": "U1", "channel": "C1", "channel_type": "C"}),
            )
        },
    },
    EventType {
        name: "team_join",
        description: "Slack: a new member joined the workspace.",
        sample: || slack(&json!({"type": "team_join", "user": {"id": "U1", "name": "ada"}})),
    },
    EventType {
        name: "command",
        description: "Slack: somebody used a slash command of the app.",
        sample: || json!({"command": "/report", "text": "today", "user_id": "U1", "channel_id": "C1", "team_id": "T1"}),
    },
];

/// Returns what the event of another flow has: `completed`, `failed` or `waiting`.
pub fn of_flow(slug: &str, what: &str) -> (String, Json) {
    let mut sample = json!({
        "flow": slug,
        "run_id": "0dkp3v8w2m5xq7za",
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "status": what,
    });
    let words = match what {
        "completed" => {
            sample["output"] = json!({});
            "a run completed, finished, is done; the event has its output"
        }
        "failed" => {
            sample["error"] = json!({});
            "a run failed or timed out; the event has its error"
        }
        _ => {
            sample["wait"] =
                json!({"wait": "w1", "key": "approval", "actions": ["approve", "reject"]});
            "a run waits for an answer or an approval"
        }
    };
    (format!("Flow `{slug}`: {words}."), sample)
}
