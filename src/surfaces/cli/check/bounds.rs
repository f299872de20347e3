//! `flowstone check --bounds`: what a run of each flow uses at most.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flowstone_engine::disk::{self, Edited, folder_of};
use flowstone_flow::bounds::{Amounts, Most, Quantity};
use flowstone_flow::flow::{Around, Called, bounds};
use flowstone_flow::limits::Limits;
use flowstone_lang::diagnostic::Excerpt;
use serde_json::{Map, Value as Json, json};

use super::Checking;
use crate::cli::output;
use crate::cli::table::{Column, table};

/// The bounds of a flow file.
#[derive(Clone)]
pub(super) struct FlowBounds {
    slug: String,
    file: String,
    amounts: Amounts,
    reasons: Vec<Why>,
    /// The number of steps at which a run is stopped.
    limit: u64,
}

#[derive(Clone)]
struct Why {
    quantities: Vec<Quantity>,
    message: String,
    place: Option<Excerpt>,
}

/// Computes the bounds of files, each once.
pub(super) struct Computing<'a> {
    checking: &'a Checking<'a>,
    edited: &'a Edited,
    /// The bounds by file; `None` while they are computed, and for files that are not flows.
    known: RefCell<BTreeMap<PathBuf, Option<FlowBounds>>>,
}

impl<'a> Computing<'a> {
    pub(super) fn new(checking: &'a Checking<'a>, edited: &'a Edited) -> Computing<'a> {
        Computing {
            checking,
            edited,
            known: RefCell::default(),
        }
    }

    /// Returns the bounds of the files that are flows.
    pub(super) fn all(&self, files: &[PathBuf]) -> Vec<FlowBounds> {
        files.iter().filter_map(|file| self.of(file)).collect()
    }

    fn of(&self, file: &Path) -> Option<FlowBounds> {
        if let Some(known) = self.known.borrow().get(file) {
            return known.clone();
        }
        self.known.borrow_mut().insert(file.to_path_buf(), None);
        let found = self.compute(file);
        self.known
            .borrow_mut()
            .insert(file.to_path_buf(), found.clone());
        found
    }

    fn compute(&self, file: &Path) -> Option<FlowBounds> {
        let session = self.checking.app.session();
        let name = file.display().to_string();
        let around = (&*self.checking.steps, Some(self.checking.around()));
        let checked = disk::check_edited(&session, (file, &name), around, self.edited);
        let flow = checked.loaded?.flow;
        let called = |slug: &str| self.called(file, slug);
        let found = bounds(
            &flow,
            Around {
                steps: &self.checking.steps,
                settings: &self.checking.settings,
                called: &called,
            },
        );
        let sources = session.world().sources.borrow();
        let reasons = found.reasons.into_iter().map(|reason| Why {
            quantities: reason.quantities,
            message: reason.message,
            place: Excerpt::find(&sources, reason.span),
        });
        Some(FlowBounds {
            slug: flow.slug.to_string(),
            file: name,
            amounts: found.amounts,
            reasons: reasons.collect(),
            limit: Limits::of(&self.checking.settings).steps,
        })
    }

    /// Returns the bounds of a flow that a file calls.
    fn called(&self, file: &Path, slug: &str) -> Called {
        let root = &self.checking.project.root;
        let Ok(found) = disk::find(root, Some(folder_of(file)), slug) else {
            return Called::Unknown;
        };
        if matches!(self.known.borrow().get(&found.path), Some(None)) {
            return Called::Recursive;
        }
        match self.of(&found.path) {
            Some(bounds) => {
                let why = bounds.reasons.first().map(|why| why.message.clone());
                Called::Known(bounds.amounts, why)
            }
            None => Called::Unknown,
        }
    }
}

/// Prints bounds for a person.
pub(super) fn tell(all: &[FlowBounds]) {
    let heading = [
        Column::Whole("flow"),
        Column::Whole("steps"),
        Column::Whole("model turns"),
        Column::Whole("tool calls"),
        Column::Whole("tokens"),
        Column::Whole("cost"),
    ];
    let rows = all.iter().map(|bounds| {
        let cells = Quantity::ALL
            .into_iter()
            .map(|it| shown(it, bounds.amounts.get(it)));
        [bounds.slug.clone()].into_iter().chain(cells).collect()
    });
    output::data(&table(&heading, rows));
    for bounds in all {
        for why in &bounds.reasons {
            let place = match &why.place {
                Some(place) => format!("{}:{}:{}", place.file, place.line, place.column),
                None => bounds.file.clone(),
            };
            let names: Vec<&str> = why.quantities.iter().map(|it| it.name()).collect();
            output::note(&format!("{place}: {} ({})", why.message, names.join(", ")));
        }
        if bounds.amounts.get(Quantity::Steps) == Most::Unbounded {
            output::note(&format!(
                "{}: a run is stopped after {} steps, by `:limits {{:steps n}}`",
                bounds.file, bounds.limit
            ));
        }
    }
}

fn shown(quantity: Quantity, most: Most) -> String {
    match (quantity, most) {
        (Quantity::Cost, Most::Number(micros)) => {
            format!("${}.{:06}", micros / 1_000_000, micros % 1_000_000)
        }
        (_, most) => most.to_string(),
    }
}

pub(super) fn to_json(all: &[FlowBounds]) -> Json {
    all.iter()
        .map(|bounds| {
            let mut object = Map::new();
            object.insert("flow".into(), json!(bounds.slug));
            object.insert("file".into(), json!(bounds.file));
            for quantity in Quantity::ALL {
                let most = bounds.amounts.get(quantity).number();
                object.insert(quantity.key().into(), json!(most));
            }
            let reasons = bounds.reasons.iter().map(|why| {
                let place = why.place.as_ref();
                json!({
                    "quantities": why.quantities.iter().map(|it| it.key()).collect::<Vec<_>>(),
                    "message": why.message,
                    "line": place.map(|place| place.line),
                    "column": place.map(|place| place.column),
                    "file": place.map(|place| place.file.clone()),
                })
            });
            object.insert("unbounded".into(), reasons.collect());
            object.insert("stepLimit".into(), json!(bounds.limit));
            Json::from(object)
        })
        .collect()
}
