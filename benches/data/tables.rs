//! A million rows of CSV through `:table`, beside the same work in sqlite3 and in polars.
//!
//! sqlite3 gets a table of the same columns and indexes, with its own defaults; a figure of it is a process, of which
//! starting takes 3 ms. Polars reads the CSV once and keeps a columnar file; its figures are without the start of
//! Python, and with nothing that survives a crash. `FLOWSTONE_BENCH_PYTHON` names a Python that has polars.

use std::fmt::Write as _;
use std::io::Result;
use std::path::Path;
use std::time::Duration;

use crate::world::{World, millis, tool};
use crate::{Measured, Row};

pub const ROWS: &[Row] = &[Row {
    name: "tables of a million rows",
    target: "<= 1.5x of sqlite3",
    measure: million,
}];

const ORDERS: usize = 1_000_000;
const CUSTOMERS: usize = 50_000;
const MOST: f64 = 1.5;

/// One piece of work, said three times.
struct Work {
    what: &'static str,
    flow: &'static str,
    sql: &'static str,
    python: &'static str,
    /// Whether the same bytes end on the disk, so that polars may be held against it.
    is_comparable: bool,
}

const WORKS: &[Work] = &[
    Work {
        what: "import 1,000,000 rows of 8 columns, 3 indexes",
        flow: "(flow/step :table :load {:op :import :table \"orders\" :from \"orders.csv\" :key-fields [:id] :index-fields [:status :customer]})",
        sql: "CREATE TABLE orders (id INTEGER, customer INTEGER, status TEXT, amount REAL, paid TEXT, day TEXT, at TEXT, note TEXT);
.import --csv --skip 1 orders.csv orders
CREATE UNIQUE INDEX orders_id ON orders (id); CREATE INDEX orders_status ON orders (status); CREATE INDEX orders_customer ON orders (customer);",
        python: "pl.read_csv('orders.csv', try_parse_dates=True).write_ipc('orders.arrow')",
        is_comparable: false,
    },
    Work {
        what: "import 50,000 rows of 3 columns",
        flow: "(flow/step :table :load {:op :import :table \"customers\" :from \"customers.csv\" :key-fields [:customer]})",
        sql: "CREATE TABLE customers (customer INTEGER, name TEXT, region TEXT);
.import --csv --skip 1 customers.csv customers
CREATE UNIQUE INDEX customers_customer ON customers (customer);",
        python: "pl.read_csv('customers.csv').write_ipc('customers.arrow')",
        is_comparable: false,
    },
    Work {
        what: "a page of 1,000 by an index, sorted, and the count",
        flow: "(flow/step :table :page {:op :query :table \"orders\" :where [[:customer :< 500] [:status := \"open\"]] :sort [[:amount :desc]] :page {:limit 1000 :include-total-count true}})",
        sql: "SELECT count(*) FROM orders WHERE customer < 500 AND status = 'open';
SELECT * FROM orders WHERE customer < 500 AND status = 'open' ORDER BY amount DESC LIMIT 1000;",
        python: "pl.scan_ipc('orders.arrow').filter((pl.col('customer') < 500) & (pl.col('status') == 'open')).sort('amount', descending=True).head(1000).collect()",
        is_comparable: true,
    },
    Work {
        what: "a page of 1,000 by no index, and the count",
        flow: "(flow/step :table :page {:op :query :table \"orders\" :where [[:amount :> 990] [:note :contains \"7\"]] :page {:limit 1000 :include-total-count true}})",
        sql: "SELECT count(*) FROM orders WHERE amount > 990 AND instr(note, '7') > 0;
SELECT * FROM orders WHERE amount > 990 AND instr(note, '7') > 0 LIMIT 1000;",
        python: "pl.scan_ipc('orders.arrow').filter((pl.col('amount') > 990) & pl.col('note').str.contains('7', literal=True)).head(1000).collect()",
        is_comparable: true,
    },
    Work {
        what: "5 groups: count, sum, average",
        flow: "(flow/step :table :groups {:op :aggregate :table \"orders\" :group-by [:status] :metrics [{:op :count :as :n} {:op :sum :field :amount :as :sum} {:op :avg :field :amount :as :avg}]})",
        sql: "SELECT status, count(*), sum(amount), avg(amount) FROM orders GROUP BY status;",
        python: "pl.scan_ipc('orders.arrow').group_by('status').agg(pl.len(), pl.col('amount').sum(), pl.col('amount').mean().alias('m')).collect()",
        is_comparable: true,
    },
    Work {
        what: "50,000 groups, the 10 largest",
        flow: "(flow/step :table :groups {:op :aggregate :table \"orders\" :group-by [:customer] :metrics [{:op :count :as :n} {:op :max :field :amount :as :top}] :order-by [[:n :desc] [:customer :asc]] :limit 10})",
        sql: "SELECT customer, count(*), max(amount) FROM orders GROUP BY customer ORDER BY 2 DESC, 1 LIMIT 10;",
        python: "pl.scan_ipc('orders.arrow').group_by('customer').agg(pl.len().alias('n'), pl.col('amount').max()).sort(['n', 'customer'], descending=[True, False]).head(10).collect()",
        is_comparable: true,
    },
    Work {
        what: "12 months of 3 statuses, of a part of the rows",
        flow: "(flow/step :table :groups {:op :aggregate :table \"orders\" :where [[:paid := true]] :group-by [:status {:field :day :bucket {:op :date-trunc :unit :month} :as :month}] :metrics [{:op :sum :field :amount :as :sum}]})",
        sql: "SELECT status, substr(day, 1, 7), sum(amount) FROM orders WHERE paid = 'true' GROUP BY 1, 2;",
        python: "pl.scan_ipc('orders.arrow').filter(pl.col('paid')).group_by('status', pl.col('day').dt.truncate('1mo')).agg(pl.col('amount').sum()).collect()",
        is_comparable: true,
    },
    Work {
        what: "join 1,000,000 rows with 50,000 into a table",
        flow: "(flow/step :table :join {:op :materialize-join :left {:table \"orders\" :select [:id :customer :amount]} :right {:table \"customers\"} :on [{:left-field :customer :right-field :customer}] :project {:keep-left :all :right-fields [{:field :name} {:field :region}]} :into {:table \"joined\" :write-mode :append}})",
        sql: "CREATE TABLE joined AS SELECT o.id, o.customer, o.amount, c.name, c.region FROM orders o LEFT JOIN customers c ON c.customer = o.customer;",
        python: "pl.scan_ipc('orders.arrow').select('id', 'customer', 'amount').join(pl.scan_ipc('customers.arrow'), on='customer', how='left').collect().write_ipc('joined.arrow')",
        is_comparable: false,
    },
    Work {
        what: "export 1,000,000 rows",
        flow: "(flow/step :table :out {:op :export :table \"orders\"})",
        sql: ".mode csv\n.headers on\n.once out.csv\nSELECT * FROM orders;",
        python: "pl.read_ipc('orders.arrow').write_csv('polars.csv')",
        is_comparable: false,
    },
];

fn million(folder: &Path) -> Result<Vec<Measured>> {
    std::fs::write(folder.join("orders.csv"), orders())?;
    std::fs::write(folder.join("customers.csv"), customers())?;
    let world = World::open(folder)?;
    let engine = world.engine();
    let mut found = Vec::new();
    for (place, work) in WORKS.iter().enumerate() {
        let is_write = [":import", ":materialize-join"]
            .iter()
            .any(|op| work.flow.contains(op));
        let times = if is_write { 1 } else { 5 };
        let ours = least(times, || Ok(Some(world.run(&engine, work.flow)?.took)))?;
        let script = format!("work-{place}.sql");
        std::fs::write(folder.join(&script), work.sql)?;
        let read = format!(".read {script}");
        let theirs = least(times, || {
            let ran = tool(folder, "sqlite3", &["peer.db", &read])?;
            Ok(ran.map(|(_, took)| took))
        })?;
        let polars = polars(folder, work, times)?;
        found.push(measured(work, ours, theirs, polars));
    }
    Ok(found)
}

/// The least of some times; `None` when the tool is not there.
fn least(
    times: usize,
    mut measure: impl FnMut() -> Result<Option<Duration>>,
) -> Result<Option<Duration>> {
    let mut best: Option<Duration> = None;
    for _ in 0..times {
        let Some(took) = measure()? else {
            return Ok(None);
        };
        best = Some(best.map_or(took, |best| best.min(took)));
    }
    Ok(best)
}

fn polars(folder: &Path, work: &Work, times: usize) -> Result<Option<Duration>> {
    let script = format!(
        "import time\ntry:\n    import polars as pl\nexcept ImportError:\n    raise SystemExit\nbest = None\nfor _ in range({times}):\n    begun = time.perf_counter()\n    {}\n    took = time.perf_counter() - begun\n    best = min(took, best or took)\nprint(best)\n",
        work.python
    );
    std::fs::write(folder.join("work.py"), script)?;
    let python = std::env::var("FLOWSTONE_BENCH_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let ran = tool(folder, &python, &["work.py"])?;
    Ok(ran.and_then(|(text, _)| text.trim().parse().ok().map(Duration::from_secs_f64)))
}

fn measured(
    work: &Work,
    ours: Option<Duration>,
    theirs: Option<Duration>,
    polars: Option<Duration>,
) -> Measured {
    let ours = ours.unwrap_or_default();
    let mut words = millis(ours);
    let mut is_met = None;
    let beside = |name: &str, peer: Option<Duration>, words: &mut String| match peer {
        None => {
            let _ = write!(words, "; {name} is not here");
            None
        }
        Some(peer) => {
            let times = ours.as_secs_f64() / peer.as_secs_f64();
            let _ = write!(words, "; {name} {} ({times:.2}x)", millis(peer));
            Some(times <= MOST)
        }
    };
    if let Some(met) = beside("sqlite3", theirs, &mut words) {
        is_met = Some(met);
    }
    let met = beside("polars", polars, &mut words);
    if !work.is_comparable && met.is_some() {
        words.push_str(" (it keeps less)");
    }
    Measured {
        what: work.what.to_owned(),
        words,
        is_met,
    }
}

/// Orders that look like orders, the same every time.
fn orders() -> String {
    const STATUSES: [&str; 5] = ["open", "paid", "sent", "returned", "lost"];
    let mut text = String::from("id,customer,status,amount,paid,day,at,note\n");
    let mut seed = 42_u64;
    for id in 0..ORDERS {
        let random = next(&mut seed);
        let (cents, day) = (random % 100_000, (random >> 20) % 336);
        let customer = (random >> 30) % CUSTOMERS as u64;
        let status = STATUSES[(random >> 50) as usize % STATUSES.len()];
        let paid = random & (1 << 60) != 0;
        let (month, date) = (day / 28 + 1, day % 28 + 1);
        let second = (random >> 10) % 86_400;
        let _ = writeln!(
            text,
            "{id},{customer},{status},{}.{:02},{paid},2026-{month:02}-{date:02},2026-{month:02}-{date:02}T{:02}:{:02}:{:02}Z,note {}",
            cents / 100,
            cents % 100,
            second / 3600,
            second / 60 % 60,
            second % 60,
            random % 1_000_003,
        );
    }
    text
}

fn customers() -> String {
    let mut text = String::from("customer,name,region\n");
    for customer in 0..CUSTOMERS {
        let _ = writeln!(
            text,
            "{customer},Customer {customer},region {}",
            customer % 12
        );
    }
    text
}

/// SplitMix64.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
