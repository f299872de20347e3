//! What discovery answers for the use cases of tables. The first was written before the ranking was tuned.
//!
//! A row has the use case, and the integration and the beginning of the tool that fit best; `-` where nothing of the project does it.

use flowstone_fronts::kit::tools::{discover_tools, discover_triggers};
use flowstone_stores::memory::{Memory, MemoryOptions};
use serde_json::{Value as Json, json};

use super::project::{Project, SLUG, run};

const SETTINGS: &str = r#"{:allow {:net ["127.0.0.1"]}
  :connections {:ai {:backend :scripted :models ["m"] :script {:turns ["x"]}}
                :gh {:base-url "https://api.github.com" :label "GitHub" :auth {:type :none}}
                :linear {:backend :mcp :base-url "https://mcp.linear.example.com/mcp" :auth {:type :oauth}}
                :mailbox {:type :smtp :base-url "smtp://mail.example.com" :auth {:type :none}}
                :shop {:webhook {:type :hmac-sha256 :secret-ref :shop-hook :header "X-Shop-Signature"}}
                :warehouse {:type :database :backend :postgres :base-url "postgres://reader@db.example.com/shop"
                            :auth {:type :basic :secret-ref :warehouse-password-of-this-test}}}}"#;

const FLOW: &str = r#"{:slug :mail
  :requires [{:slot :crm :type :http-api :label "CRM customers"}]
  :mcp [{:id :handbook/all :connection :handbook
         :tools [{:name "search_pages" :description "Searches the pages of the company's handbook."
                  :input-schema [:map [:query :string]]}]}]
  :steps [{:id :weather/forecast :type :function :tool {:name "forecast"}
           :description "Returns the weather forecast of a city."
           :input-schema [:map [:city :string]] :defaults {:code '(fn [input] input)}}]
  :flow '1}"#;

const TOOLS: &str = "
fetch a web page by its url | http | http
download a JSON document from an address | http | http
summarize a long text | llm | llm
classify support tickets by urgency | llm | llm
translate a message into German | llm | llm
extract the total from a receipt | llm | llm
write a reply to a complaint | llm | llm
research a topic with several tools | agent | agent
send an email to the team | notify | notify
notify somebody by mail when the work is done | notify | notify
run a SQL query on postgres | warehouse,db | db
query a database | warehouse,db | db
run SQL against the orders database | warehouse,db | db
select rows from the warehouse database | warehouse | db
store rows in a table | table | table
list the rows of a table that match a condition | table | table query
remember the last id that was seen | kv | kv set
read a counter | kv | kv
ask a human for approval | wait | wait
wait for a person to fill in a form | wait | wait
pause for ten minutes | sleep | sleep
delay the next step by an hour | sleep | sleep
transform JSON with a jq filter | jq | jq
compute a sum in code | function | function
run a shell command on a remote machine | ssh | ssh
restart a service over ssh | ssh | ssh
edit files in a git repository | files | files
search the source code of a repository | files | files
what date is it in Tokyo | time | time
convert a time to another timezone | time | time
give work to an external worker | job | job
call a tool of an MCP server | mcp | mcp
search the documents of the project | search,knowledge | search,knowledge
recall facts from memory | knowledge | knowledge
run several steps in parallel | fanout | fanout
create an issue in Linear | linear | linear
comment on a Linear issue | linear | linear
look up a customer in the CRM | crm | http
add a contact to the CRM | crm | http
open a pull request on GitHub | gh | http
list the open issues on GitHub | gh | http
remind customers about unpaid invoices | invoices | invoices
get the weather forecast for a city | weather | weather/forecast
search the pages of the handbook | handbook | search_pages
parse XML | - | -
post a slack message | - | -
observe distant galaxies telescopically | - | -
charge a credit card with Stripe | - | -
book a flight to Rome | - | -
upload a video to YouTube | - | -
print a label on the office printer | - | -
play music on Spotify | - | -
create a Jira ticket | - | -
when a github issue is opened, do something | - | -
every morning at 9 | - | -
every Monday, send an email with the report | notify | notify
when a payment fails, send an email | notify | notify
run every 15 minutes | - | -
";

/// More use cases, which were written after the weights and had no part in them.
const LATER: &str = "
archive old orders in the warehouse | warehouse | db
send a text message by Twilio | - | -
convert a PDF to text | - | -
resize images | - | -
count the words of a text in code | function | function
ask the manager to sign off the expense | wait | wait
create a calendar event in Google Calendar | - | -
post to our Mastodon account | - | -
deploy over ssh to web-1 | ssh | ssh
keep a list of customers in a table | table | table
write the result into a file | files | files
query the CRM for open deals | crm | http
open an issue in Linear | linear | linear
email the invoice to the customer | notify | notify
draft a polite answer to the customer | llm | llm
explain a diff in plain words | llm | llm
fetch exchange rates from an API | http | http
call the GitHub API | gh | http
tell the team in Microsoft Teams | - | -
compute a checksum | function | function
schedule a meeting in Outlook | - | -
insert rows into the warehouse database | warehouse | db
wait until tomorrow | sleep,wait | sleep,wait
merge two JSON objects with jq | jq | jq
search the pages of Notion | - | -
create a Jira ticket for this job | - | -
transcribe a voice memo | - | -
translate a page of the handbook | llm | llm
will it rain in Oslo | weather,- | weather/forecast,-
order a pizza | - | -
";

/// The rows whose answer is another one: the words for what they ask are in no description, or in a wrong one.
const MISSED: &[&str] = &[
    "write a reply to a complaint",
    "count the words of a text in code",
    "ask the manager to sign off the expense",
    "write the result into a file",
    "translate a page of the handbook",
];

const EVENTS: &str = "
order paid in the shop | shop | webhook.shop.EVENT
a pull request is opened | github | webhook.github.pull_request
an issue is opened on GitHub | github | webhook.github.issues
an invoice is paid in Stripe | stripe | webhook.stripe.invoice.paid
a subscription is cancelled in Stripe | stripe | webhook.stripe.customer.subscription.deleted
somebody mentions the app in Slack | slack | webhook.slack.app_mention
the flow invoices has failed | local | flow.invoices.failed
invoices is done | local | flow.invoices.completed
every morning at 9 | - | -
the moon is full | - | -
";

async fn project() -> Project {
    let stores = Memory::new(MemoryOptions::default()).open();
    let project = Project::set(stores, SETTINGS);
    project.commit(SLUG, FLOW).await;
    let invoices =
        "{:slug :invoices :description \"Sends reminders about unpaid invoices.\" :flow '1}";
    project.commit("invoices", invoices).await;
    project
}

/// Returns the rows whose answer is another one, and the number of all.
async fn wrong(
    table: &str,
    answer_of: impl AsyncFn(&str) -> (String, String),
) -> (Vec<(String, String)>, usize) {
    let mut wrong = Vec::new();
    let rows: Vec<&str> = table.lines().filter(|line| !line.is_empty()).collect();
    for row in &rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let (integration, name) = answer_of(cells[0]).await;
        let is_one = |wanted: &str, found: &str, is_start: bool| {
            wanted.split(',').any(|wanted| match is_start {
                true => found == wanted || found.starts_with(&format!("{wanted} ")),
                false => found == wanted,
            })
        };
        if !is_one(cells[1], &integration, false) || !is_one(cells[2], &name, true) {
            wrong.push((cells[0].to_owned(), format!("{integration} {name}")));
        }
    }
    (wrong, rows.len())
}

#[test]
fn use_cases_find_their_tools() {
    run(async {
        let project = project().await;
        let table = format!("{TOOLS}{LATER}");
        let (wrong, all) = wrong(&table, async |use_case| {
            let answer = project
                .call(&discover_tools::TOOL, json!({"use_cases": [use_case]}))
                .await;
            let found = &answer["capabilities"][0];
            let text = |value: &Json| value.as_str().unwrap_or("-").to_owned();
            (text(&found["integration"]), text(&found["tool"]["name"]))
        })
        .await;
        let missed: Vec<&str> = wrong.iter().map(|(use_case, _)| &**use_case).collect();
        assert_eq!((missed, all), (MISSED.to_vec(), 88), "{wrong:#?}");
    });
}

#[test]
fn use_cases_find_their_events() {
    run(async {
        let project = project().await;
        let (wrong, all) = wrong(EVENTS, async |use_case| {
            let answer = project
                .call(&discover_triggers::TOOL, json!({"use_cases": [use_case]}))
                .await;
            let found = &answer["capabilities"][0];
            let text = |value: &Json| value.as_str().unwrap_or("-").to_owned();
            (
                text(&found["integration"]),
                text(&found["event"]["event_key"]),
            )
        })
        .await;
        assert_eq!((wrong, all), (Vec::new(), 10));
    });
}
