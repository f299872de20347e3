//! Trees of 100,000 files: taken, listed and searched, beside ripgrep over the same folder.

use std::fs;
use std::io::{Error, Result};
use std::path::Path;
use std::time::Duration;

use crate::world::{World, median, millis, tool};
use crate::{Measured, Row};

pub const ROWS: &[Row] = &[Row {
    name: "files: 100,000 in a tree",
    target: "within 1.5 times ripgrep",
    measure,
}];

const FILES: usize = 100_000;

/// Makes files of about 1 KB in folders of 100; one in a thousand says `needle`.
fn make(folder: &Path) -> Result<()> {
    for number in 0..FILES {
        let place = folder.join(format!("part-{}/unit-{}", number / 5000, number / 100));
        if number % 100 == 0 {
            fs::create_dir_all(&place)?;
        }
        let mut text = String::new();
        for line in 0..20 {
            let seed = number * 31 + line * 7;
            text.push_str(&format!(
                "let value_{seed} = compute({}, \"{:x}\"); // item {line}\n",
                seed % 97,
                seed.wrapping_mul(2_654_435_761)
            ));
        }
        if number % 1000 == 7 {
            text.push_str("// the Needle of this file\n");
        }
        let kind = ["rs", "md", "txt", "js"][number % 4];
        fs::write(place.join(format!("file-{number}.{kind}")), text)?;
    }
    Ok(())
}

fn measure(folder: &Path) -> Result<Vec<Measured>> {
    let tree = folder.join("tree");
    make(&tree)?;
    let world = World::open(folder)?;
    let mut rows = Vec::new();
    let own = |what: &str, time: Duration| Measured {
        what: what.to_owned(),
        words: millis(time),
        is_met: None,
    };
    let resolve =
        "(flow/step :files :tree {:op :resolve-source :source {:type :dir :path \"tree\"}})";
    let first = world.run(&world.engine(), resolve)?;
    rows.push(own("resolve, the first time", first.took));
    // What was written within the last two seconds is read again; a project is not that young.
    std::thread::sleep(Duration::from_secs(3));
    world.run(&world.engine(), resolve)?;
    rows.push(own(
        "resolve, nothing changed",
        median(|| Ok(world.run(&world.engine(), resolve)?.took))?,
    ));
    let mut round = 0;
    rows.push(own(
        "resolve, ten files changed",
        median(|| {
            round += 1;
            for number in 0..10 {
                let place = tree.join(format!("part-0/unit-{number}/new-{number}.txt"));
                fs::write(place, format!("round {round}\n"))?;
            }
            Ok(world.run(&world.engine(), resolve)?.took)
        })?,
    ));
    let ran = world.run(&world.engine(), resolve)?;
    let uri = ran
        .value
        .get("uri")
        .and_then(|uri| uri.as_str().map(str::to_owned));
    let uri = uri.ok_or_else(|| Error::other("the tree has no name"))?;
    for case in CASES {
        rows.extend(beside(&world, &tree, &uri, case)?);
    }
    Ok(rows)
}

/// The same work for both.
struct Case {
    what: &'static str,
    config: &'static str,
    rg: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        what: "list, a glob",
        config: ":op :list :glob \"**/*.rs\"",
        rg: &["--files", "--glob", "**/*.rs"],
    },
    Case {
        what: "list, all 100,000 as one value",
        config: ":op :list :limit 100000",
        rg: &["--files"],
    },
    Case {
        what: "search, rare text",
        config: ":op :search :query \"Needle\" :case-sensitive? true :limit 10000",
        rg: &["--no-heading", "-n", "-F", "Needle"],
    },
    Case {
        what: "search, rare, any case",
        config: ":op :search :query \"needle\" :limit 10000",
        rg: &["--no-heading", "-n", "-i", "-F", "needle"],
    },
    Case {
        what: "search, absent text",
        config: ":op :search :query \"haystack\" :case-sensitive? true",
        rg: &["--no-heading", "-n", "-F", "haystack"],
    },
    Case {
        what: "search, a pattern",
        config: ":op :search :query \"n[a-z]+dle of \\\\w+ file\" :regex? true :limit 10000",
        rg: &["--no-heading", "-n", "-i", "n[a-z]+dle of \\w+ file"],
    },
    Case {
        what: "search, a pattern without letters to go by",
        config: ":op :search :query \"\\\\d{6} = \\\\w+\\\\(96, \\\"f{3}\" :regex? true :limit 10000",
        rg: &["--no-heading", "-n", "-i", "\\d{6} = \\w+\\(96, \"f{3}"],
    },
    Case {
        what: "search, common text, the first 100",
        config: ":op :search :query \"compute\"",
        rg: &["--count", "-i", "-F", "compute"],
    },
];

fn beside(world: &World, tree: &Path, uri: &str, case: &Case) -> Result<Vec<Measured>> {
    let step = format!(
        "(flow/step :files :it {{{} :source \"{uri}\"}})",
        case.config
    );
    // Counted, so that only the step itself has the value to write down.
    let flow = format!("(count (or (:matches {step}) []))");
    let flow = if case.config.contains(":list") {
        flow.replace(":matches", ":entries")
    } else {
        flow
    };
    let cold = median(|| Ok(world.run(&world.engine(), &flow)?.took))?;
    let engine = world.engine();
    let count = world.run(&engine, &flow)?.value;
    let warm = median(|| Ok(world.run(&engine, &flow)?.took))?;
    let mut lines = None;
    let peer = median(|| {
        let mut args = vec!["--no-config", "--hidden"];
        args.extend(case.rg);
        let ran = tool(tree, "rg", &args)?;
        lines = ran.as_ref().map(|(text, _)| text.lines().count());
        Ok(ran.map_or(Duration::ZERO, |(_, took)| took))
    })?;
    let Some(lines) = lines else {
        return Ok(vec![Measured {
            what: case.what.to_owned(),
            words: format!(
                "{} cold, {} warm; `rg` is missing",
                millis(cold),
                millis(warm)
            ),
            is_met: None,
        }]);
    };
    let times = cold.as_secs_f64() / peer.as_secs_f64();
    Ok(vec![Measured {
        what: case.what.to_owned(),
        words: format!(
            "{} ({} warm), {count:?} found; rg {}, {lines} lines: {times:.2}x",
            millis(cold),
            millis(warm),
            millis(peer)
        ),
        is_met: Some(times <= 1.5),
    }])
}
