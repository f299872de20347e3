//! Inspects a template without rendering it: its depth, the helpers that it calls, and the variables that it uses.

use handlebars::template::{HelperTemplate, Parameter, TemplateElement};
use handlebars::{Path, PathSeg, Template};

use super::{BUILT_IN, HELPERS, TemplateError};

/// Maximum depth of nested blocks and calls, because the parser recurses as deep as the text is nested.
pub(super) const MOST_NESTED: usize = 50;

/// Returns how deep the blocks and calls of a text are nested, without parsing it.
pub(super) fn depth(template: &str) -> usize {
    let bytes = template.as_bytes();
    let (mut deepest, mut blocks, mut calls) = (0, 0_usize, 0_usize);
    let (mut at, mut is_inside) = (0, false);
    while at < bytes.len() {
        let rest = &bytes[at..];
        if rest.starts_with(b"{{") {
            is_inside = true;
            calls = 0;
            let inner = rest.iter().find(|it| !b"{~ ".contains(it));
            match inner {
                Some(b'#') => blocks += 1,
                Some(b'/') => blocks = blocks.saturating_sub(1),
                _ => {}
            }
            at += 2;
        } else if rest.starts_with(b"}}") {
            is_inside = false;
            at += 2;
        } else {
            match bytes[at] {
                b'(' | b'[' | b'{' if is_inside => calls += 1,
                b')' | b']' | b'}' if is_inside => calls = calls.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
        deepest = deepest.max(blocks + calls);
    }
    deepest
}

/// Refuses templates with includes, or with helpers that do not exist.
pub(super) fn check(template: &Template) -> Result<(), TemplateError> {
    for element in &template.elements {
        match element {
            TemplateElement::Expression(call) | TemplateElement::HtmlExpression(call)
                if !is_variable(call) =>
            {
                call_check(call)?;
            }
            TemplateElement::HelperBlock(block) => {
                call_check(block)?;
                for inner in block.template.iter().chain(&block.inverse) {
                    check(inner)?;
                }
            }
            TemplateElement::PartialExpression(_)
            | TemplateElement::PartialBlock(_)
            | TemplateElement::DecoratorExpression(_)
            | TemplateElement::DecoratorBlock(_) => return Err(TemplateError::Partial),
            // Text, and elements that a later version of the parser may add.
            _ => {}
        }
    }
    Ok(())
}

fn call_check(call: &HelperTemplate) -> Result<(), TemplateError> {
    let name = match &call.name {
        Parameter::Name(name) => Some(name.clone()),
        Parameter::Path(path) => single(path).map(str::to_owned),
        _ => None,
    };
    if let Some(name) = name
        && !HELPERS.contains(&&*name)
        && !BUILT_IN.contains(&&*name)
    {
        return Err(TemplateError::UnknownHelper { name });
    }
    for param in call.params.iter().chain(call.hash.values()) {
        if let Parameter::Subexpression(inner) = param
            && let TemplateElement::Expression(call) = &*inner.element
        {
            call_check(call)?;
        }
    }
    Ok(())
}

/// Tells whether a tag shows a variable rather than calling a helper.
pub(super) fn is_variable(call: &HelperTemplate) -> bool {
    let is_bare = call.params.is_empty() && call.hash.is_empty();
    is_bare && matches!(call.name, Parameter::Path(_))
}

/// Returns the name in a path that consists of a single name.
fn single(path: &Path) -> Option<&str> {
    match path {
        Path::Relative((segments, _)) => match segments.as_slice() {
            [PathSeg::Named(name)] => Some(name),
            _ => None,
        },
        Path::Local(_) => None,
    }
}

/// A variable of the data that a template uses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// The first name of its path.
    pub name: String,
}

/// Returns the variables that a template uses unconditionally. Variables that it tests first, with `{{#if}}`,
/// `{{#unless}}`, `{{else}}` or `default`, are left out, and so are the names inside other blocks.
///
/// # Errors
/// Returns an error if the template is not well formed.
pub fn uses(template: &str) -> Result<Vec<Use>, TemplateError> {
    super::check(template)?;
    let compiled = Template::compile(template).map_err(|error| TemplateError::Malformed {
        reason: error.reason().to_string(),
        at: error.pos(),
    })?;
    let mut found = Vec::new();
    gather(&compiled, &mut Vec::new(), &mut found);
    found.sort();
    found.dedup();
    Ok(found)
}

fn gather(template: &Template, asked: &mut Vec<String>, found: &mut Vec<Use>) {
    for element in &template.elements {
        match element {
            TemplateElement::Expression(call) | TemplateElement::HtmlExpression(call) => {
                if is_variable(call) {
                    note(&call.name, asked, found);
                } else if !is_called(call, "default") {
                    params(call, asked, found);
                }
            }
            TemplateElement::HelperBlock(block) => {
                let before = asked.len();
                // In other blocks, names refer to a different value.
                let is_same = is_called(block, "if") || is_called(block, "unless");
                if is_same || block.inverse.is_some() {
                    tested(block, asked);
                } else {
                    params(block, asked, found);
                }
                if let Some(inner) = block.template.as_ref().filter(|_| is_same) {
                    gather(inner, asked, found);
                }
                if let Some(inner) = &block.inverse {
                    gather(inner, asked, found);
                }
                asked.truncate(before);
            }
            _ => {}
        }
    }
}

/// Adds the names that a block tests.
fn tested(call: &HelperTemplate, asked: &mut Vec<String>) {
    for param in call.params.iter().chain(call.hash.values()) {
        if let Parameter::Subexpression(inner) = param
            && let TemplateElement::Expression(call) = &*inner.element
        {
            tested(call, asked);
        }
        asked.extend(first(param).map(str::to_owned));
    }
}

fn params(call: &HelperTemplate, asked: &[String], found: &mut Vec<Use>) {
    for param in call.params.iter().chain(call.hash.values()) {
        match param {
            Parameter::Subexpression(inner) => {
                if let TemplateElement::Expression(call) = &*inner.element
                    && !is_called(call, "default")
                {
                    params(call, asked, found);
                }
            }
            other => note(other, asked, found),
        }
    }
}

fn note(param: &Parameter, asked: &[String], found: &mut Vec<Use>) {
    if let Some(name) = first(param)
        && !asked.iter().any(|it| it == name)
    {
        found.push(Use {
            name: name.to_owned(),
        });
    }
}

/// Returns the first name of a path that starts at the root of the data.
fn first(param: &Parameter) -> Option<&str> {
    match param {
        Parameter::Path(Path::Relative((segments, _))) => match segments.first() {
            Some(PathSeg::Named(name)) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

fn is_called(call: &HelperTemplate, name: &str) -> bool {
    match &call.name {
        Parameter::Name(it) => it == name,
        Parameter::Path(path) => single(path) == Some(name),
        _ => false,
    }
}
