//! Triggers as interfaces and schedules.

use serde_json::Value as Json;

use super::expression::edn_text;
use super::names::kebab;
use super::workflow::{Node, Workflow};
use super::{Remark, text};

/// The entries of the definition that start runs.
pub(super) struct Entries {
    pub interfaces: Vec<String>,
    pub schedules: Vec<String>,
}

/// Returns the entries of the triggers of a workflow.
pub(super) fn read(workflow: &Workflow, starts: &[usize], remarks: &mut Vec<Remark>) -> Entries {
    let mut entries = Entries {
        interfaces: vec![":manual [{:id :run :label \"Run\" :invocation :default}]".to_owned()],
        schedules: Vec::new(),
    };
    let timezone = workflow
        .timezone
        .as_deref()
        .filter(|zone| *zone != "DEFAULT")
        .unwrap_or("UTC");
    let mut has_webhook = false;
    let triggers = starts
        .iter()
        .map(|idx| &workflow.nodes[*idx])
        .filter(|node| node.is_trigger());
    for node in triggers {
        let mut remark = |text: String| {
            remarks.push(Remark {
                node: Some(node.name.clone()),
                text,
            });
        };
        match node.kind() {
            "manualTrigger" | "start" | "executeWorkflowTrigger" => {}
            "webhook" if has_webhook => remark("left out: a flow has one webhook".to_owned()),
            "webhook" => {
                has_webhook = true;
                entries.interfaces.push(webhook(node, &mut remark));
            }
            "scheduleTrigger" | "cron" | "interval" => {
                let times = times(node, &mut remark);
                for (idx, cron) in times.iter().enumerate() {
                    let id = match idx {
                        0 => kebab(&node.name),
                        _ => format!("{}-{}", kebab(&node.name), idx + 1),
                    };
                    entries.schedules.push(format!(
                        "{{:id :{id} :label {} :invocation :default :cron {} :timezone {}}}",
                        edn_text(&node.name),
                        edn_text(cron),
                        edn_text(timezone)
                    ));
                }
            }
            _ => remark(format!(
                "triggers of type `{}` are not imported: start the flow by hand",
                node.type_
            )),
        }
    }
    entries
}

fn webhook(node: &Node, remark: &mut dyn FnMut(String)) -> String {
    let id = kebab(&node.name);
    let path = text(&node.parameters, "/path").unwrap_or(&id);
    let event: String = path
        .chars()
        .map(|char| {
            if char.is_ascii_alphanumeric() {
                char
            } else {
                '.'
            }
        })
        .collect();
    let event = event.trim_matches('.').to_owned();
    let event = if event.is_empty() { id.clone() } else { event };
    let auth = match text(&node.parameters, "/authentication") {
        Some("basicAuth") => "{:type :basic :username \"me\" :secret-ref :webhook-secret}",
        Some("headerAuth") => "{:type :api-key :secret-ref :webhook-secret}",
        _ => "{:type :bearer :secret-ref :webhook-secret}",
    };
    let given = text(&node.parameters, "/authentication").unwrap_or("none");
    remark(format!(
        "its authentication is `{given}`; the flow takes requests with the secret `webhook-secret`, which you set: see `:auth` of the interface"
    ));
    format!(
        ":webhook [{{:id :{id} :label {} :invocation :default\n               :event-name {} :auth {auth}}}]",
        edn_text(&node.name),
        edn_text(&event)
    )
}

/// Returns the times of a trigger as cron expressions with five fields.
fn times(node: &Node, remark: &mut dyn FnMut(String)) -> Vec<String> {
    let parameters = &node.parameters;
    let newer = parameters
        .pointer("/rule/interval")
        .and_then(Json::as_array);
    let older = parameters
        .pointer("/triggerTimes/item")
        .and_then(Json::as_array);
    let found: Vec<Option<String>> = match (newer, older) {
        (Some(rules), _) => rules.iter().map(rule).collect(),
        (None, Some(items)) => items.iter().map(item).collect(),
        (None, None) if node.kind() == "interval" => {
            let unit = text(parameters, "/unit").unwrap_or("seconds");
            let every = parameters
                .get("interval")
                .and_then(Json::as_u64)
                .unwrap_or(1);
            vec![every_of(unit, every)]
        }
        (None, None) => vec![None],
    };
    if found.iter().any(Option::is_none) {
        remark("a time is left out: it has no cron expression with five fields".to_owned());
    }
    found.into_iter().flatten().collect()
}

fn number(json: &Json, key: &str, usual: u64) -> u64 {
    json.get(key).and_then(Json::as_u64).unwrap_or(usual)
}

/// A step of a cron field: `*` or `*/n`.
fn step(every: u64) -> Option<String> {
    match every {
        0 => None,
        1 => Some("*".to_owned()),
        every => Some(format!("*/{every}")),
    }
}

fn rule(rule: &Json) -> Option<String> {
    let minute = number(rule, "triggerAtMinute", 0);
    let hour = number(rule, "triggerAtHour", 0);
    match rule.get("field").and_then(Json::as_str).unwrap_or("days") {
        "minutes" => every_of("minutes", number(rule, "minutesInterval", 5)),
        "hours" => {
            let every = number(rule, "hoursInterval", 1);
            (every < 24)
                .then(|| step(every))?
                .map(|every| format!("{minute} {every} * * *"))
        }
        "days" => {
            let every = number(rule, "daysInterval", 1);
            (every < 32)
                .then(|| step(every))?
                .map(|every| format!("{minute} {hour} {every} * *"))
        }
        "weeks" if number(rule, "weeksInterval", 1) == 1 => {
            let days = rule.get("triggerAtDay").and_then(Json::as_array);
            let days: Vec<String> = days
                .into_iter()
                .flatten()
                .filter_map(Json::as_u64)
                .map(|day| day.to_string())
                .collect();
            let days = if days.is_empty() {
                "0".to_owned()
            } else {
                days.join(",")
            };
            Some(format!("{minute} {hour} * * {days}"))
        }
        "months" => {
            let day = number(rule, "triggerAtDayOfMonth", 1);
            let every = number(rule, "monthsInterval", 1);
            (every <= 12)
                .then(|| step(every))?
                .map(|every| format!("{minute} {hour} {day} {every} *"))
        }
        "cronExpression" => rule
            .get("expression")
            .and_then(Json::as_str)
            .and_then(five_fields),
        _ => None,
    }
}

fn item(item: &Json) -> Option<String> {
    let (minute, hour) = (number(item, "minute", 0), number(item, "hour", 14));
    match item
        .get("mode")
        .and_then(Json::as_str)
        .unwrap_or("everyDay")
    {
        "everyMinute" => Some("* * * * *".to_owned()),
        "everyHour" => Some(format!("{minute} * * * *")),
        "everyDay" => Some(format!("{minute} {hour} * * *")),
        "everyWeek" => {
            let day = item
                .get("weekday")
                .and_then(|it| it.as_u64().or_else(|| it.as_str()?.parse().ok()))
                .unwrap_or(1);
            Some(format!("{minute} {hour} * * {day}"))
        }
        "everyMonth" => Some(format!(
            "{minute} {hour} {} * *",
            number(item, "dayOfMonth", 1)
        )),
        "everyX" => every_of(
            item.get("unit").and_then(Json::as_str).unwrap_or("hours"),
            number(item, "value", 2),
        ),
        "custom" => item
            .get("cronExpression")
            .and_then(Json::as_str)
            .and_then(five_fields),
        _ => None,
    }
}

fn every_of(unit: &str, every: u64) -> Option<String> {
    match unit {
        "minutes" if every < 60 => step(every).map(|every| format!("{every} * * * *")),
        "hours" if every < 24 => step(every).map(|every| format!("0 {every} * * *")),
        _ => None,
    }
}

/// Returns a cron expression without its field for seconds, if that is 0.
fn five_fields(text: &str) -> Option<String> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    match &fields[..] {
        [_, _, _, _, _] => Some(fields.join(" ")),
        ["0", rest @ ..] if rest.len() == 5 => Some(rest.join(" ")),
        _ => None,
    }
}
