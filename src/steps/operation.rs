//! Steps of several operations: which one is asked for, and whether the config fits it.

use flowstone_engine::diagnostic::nearest;
use flowstone_engine::step::{Field, StepError};

use crate::fields::{Fields, listed};

/// The operations of a step type.
pub(crate) struct Operations {
    /// The step type.
    pub kind: &'static str,
    /// The key that names the operation.
    pub key: &'static str,
    /// Each operation, the keys that it needs, and those that it may have.
    pub all: &'static [(
        &'static str,
        &'static [&'static str],
        &'static [&'static str],
    )],
    /// Operations that the reference knows and this build does not.
    pub later: &'static [&'static str],
    /// The step's fields.
    pub fields: &'static [Field],
    pub code: &'static str,
}

impl Operations {
    /// Returns the name of the operation that a config asks for, when the config fits it.
    pub fn choose(&self, fields: Fields<'_>) -> Result<&'static str, StepError> {
        let kind = self.kind;
        let asked = fields.name(self.key)?.unwrap_or_default();
        let names: Vec<&str> = self.all.iter().map(|operation| operation.0).collect();
        let Some((name, needed, possible)) =
            self.all.iter().find(|operation| *operation.0 == *asked)
        else {
            let what = if self.later.contains(&&*asked) {
                format!("`:{kind}` cannot do `:{asked}` yet")
            } else {
                format!("`:{kind}` has no operation `:{asked}`")
            };
            let error = StepError::config(self.code, what);
            let error = match nearest(&asked, names.iter().copied()) {
                Some(near) => error.hint(format!("did you mean `:{near}`?")),
                None => error,
            };
            return Err(error.hint(format!("there are {}", listed(&names))));
        };
        for field in self.fields {
            let is_known = field.name == self.key
                || needed.contains(&field.name)
                || possible.contains(&field.name);
            if !is_known && fields.has(field.name) {
                let error = StepError::config(
                    self.code,
                    format!("`:{}` means nothing to `:{} :{name}`", field.name, self.key),
                );
                return Err(error.hint(format!(
                    "it takes {}",
                    listed(&[*needed, *possible].concat())
                )));
            }
        }
        match needed.iter().find(|key| !fields.has(key)) {
            None => Ok(name),
            Some(missing) => {
                let doc = self
                    .fields
                    .iter()
                    .find(|field| field.name == *missing)
                    .map_or("", |field| field.doc);
                let error = StepError::config(
                    self.code,
                    format!("`:{} :{name}` needs `:{missing}`", self.key),
                );
                Err(error.hint(format!("`:{missing}`: {doc}")))
            }
        }
    }
}
