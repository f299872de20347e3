//! What is known without the open texts: the names of the language and their descriptions, and the step types. Kept as
//! long as the server runs, because a description may compile a definition of the library.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use flowstone_flow::step::StepSpec;
use flowstone_lang::library;
use flowstone_lang::session::{Description, SPECIAL_FORMS, Session};
use flowstone_lang::value::Symbol;

use super::Backend;

/// The namespace whose names need no prefix.
const CORE: &str = "clojure.core";

/// Everything that the program itself offers to a text.
pub(super) struct Library {
    session: Session,
    pub(super) specs: Vec<&'static StepSpec>,
    descriptions: RefCell<HashMap<String, Option<Rc<Description>>>>,
    names: RefCell<HashMap<String, Rc<[String]>>>,
}

impl Library {
    pub(super) fn new(backend: &dyn Backend) -> Library {
        let mut specs: Vec<&'static StepSpec> =
            backend.steps().iter().map(|step| step.spec()).collect();
        specs.sort_by_key(|spec| spec.kind);
        Library {
            session: backend.session(),
            specs,
            descriptions: RefCell::default(),
            names: RefCell::default(),
        }
    }

    /// Describes a full name, a name of `clojure.core`, a special form or a namespace.
    pub(super) fn describe(&self, name: &str) -> Option<Rc<Description>> {
        if name.is_empty() {
            return None;
        }
        if let Some(known) = self.descriptions.borrow().get(name) {
            return known.clone();
        }
        let found = self.session.describe_alone(Symbol::new(name)).map(Rc::new);
        self.descriptions
            .borrow_mut()
            .insert(name.to_owned(), found.clone());
        found
    }

    /// Returns the public names of a namespace, sorted.
    pub(super) fn names(&self, namespace: &str) -> Rc<[String]> {
        if let Some(known) = self.names.borrow().get(namespace) {
            return Rc::clone(known);
        }
        let mut names: Vec<String> = self
            .session
            .public_names(Symbol::new(namespace))
            .into_iter()
            .collect();
        if namespace == CORE {
            names.extend(SPECIAL_FORMS.iter().map(|name| (*name).to_owned()));
            names.sort();
            names.dedup();
        }
        let names: Rc<[String]> = names.into();
        self.names
            .borrow_mut()
            .insert(namespace.to_owned(), Rc::clone(&names));
        names
    }

    /// Returns the names that need no prefix.
    pub(super) fn core(&self) -> Rc<[String]> {
        self.names(CORE)
    }

    /// Returns all namespaces.
    pub(super) fn namespaces(&self) -> Vec<String> {
        let names = self.session.namespace_names().into_iter();
        names
            .map(|name| name.to_string())
            .filter(|name| name != "user")
            .collect()
    }

    /// Tells whether a name is a macro or a special form.
    pub(super) fn is_syntax(name: &str) -> bool {
        SPECIAL_FORMS.contains(&name)
            || library::forms_of(CORE, name).any(|form| form.text.starts_with("(defmacro"))
    }

    /// Returns the step type of a name.
    pub(super) fn spec(&self, name: &str) -> Option<&'static StepSpec> {
        self.specs.iter().copied().find(|spec| spec.is_named(name))
    }
}
