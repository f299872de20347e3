//! Rust data in and out: structs become maps with keywords, and results of the language become structs.

use std::error::Error;
use std::io::Write;

use flowstone_embed::reader::read_data;
use flowstone_embed::{Data, Embed, Function, Sandbox, Session, from_value, to_value};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Order {
    order_id: u32,
    items: Vec<Item>,
    status: Status,
}

#[derive(Debug, Serialize, Deserialize)]
struct Item {
    name: String,
    price: f64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Status {
    New,
    PaidBy(String),
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let session = Session::new();

    let order = Order {
        order_id: 7,
        items: vec![
            Item {
                name: "pen".to_owned(),
                price: 1.5,
            },
            Item {
                name: "ink".to_owned(),
                price: 4.25,
            },
        ],
        status: Status::New,
    };
    let value = to_value(&order)?;
    writeln!(out, "{value}")?;

    session.evaluate("(defn total [order] (reduce + (map :price (:items order))))")?;
    let total = session.call(Sandbox::new(), "total", std::slice::from_ref(&value))?;
    writeln!(out, "total: {total}")?;

    // `Data` converts parameters and results of functions in the same way.
    session.add(Function::new(
        "order/pay",
        |order: Data<Order>, by: String| {
            let status = Status::PaidBy(by);
            Data(Order { status, ..order.0 })
        },
    ));
    let paid = session.call(Sandbox::new(), "order/pay", &[value, "card".into()])?;
    let paid: Order = from_value(&paid)?;
    writeln!(out, "{:?}", paid.status)?;

    // Data that arrives as text is read without running anything; an error names the place that does not fit.
    let text = r#"{:order-id 8 :status :new :items [{:name "nib" :price "cheap"}]}"#;
    let error = from_value::<Order>(&read_data(text).map_err(|error| error.message)?);
    writeln!(
        out,
        "{}",
        error.err().map_or(String::new(), |error| error.to_string())
    )?;
    Ok(())
}
