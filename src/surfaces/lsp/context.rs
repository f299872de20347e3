//! What a place in a text is about: the type of a step, a key of its config, the value of a key, a key of the
//! definition, an argument of a call. The keys come from the rows of the step types and of the definition.

use flowstone_flow::flow::{DEFINITION, INVOCATION};
use flowstone_flow::step::{COMMON, Field, FieldType, Operation, StepSpec};
use flowstone_lang::syntax::{NodeId, NodeKind};

use super::document::Document;

/// Names under which a flow calls a step.
const STEP_CALLS: &[&str] = &["flow/step", "step"];

/// The meaning of a place.
#[derive(Debug)]
pub(super) enum Context {
    /// The first argument of `flow/step`.
    StepType,
    /// A key of a map with known keys.
    Key(Keys),
    /// The value of a key with known values.
    Value(FieldOf),
    /// Anything else.
    Code,
}

/// The keys that a map may have.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) fields: Vec<&'static Field>,
    /// The map, to see which keys it has already.
    pub(super) map: NodeId,
    /// What has the keys, such as `:http`.
    pub(super) owner: String,
}

/// A field, and the operations that its value may select.
#[derive(Debug)]
pub(super) struct FieldOf {
    pub(super) field: &'static Field,
    pub(super) operations: &'static [Operation],
    /// What has the field, such as `:http`.
    pub(super) owner: String,
}

/// A step call.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepCall {
    pub(super) type_: Option<NodeId>,
    pub(super) id: Option<NodeId>,
    pub(super) config: Option<NodeId>,
}

/// One step of the way from a collection to a place in it.
#[derive(Debug, Clone)]
enum Way {
    Key,
    Value(String),
    Item,
}

/// Returns the meaning of an offset.
pub(super) fn context(document: &Document, specs: &[&'static StepSpec], offset: usize) -> Context {
    let Some((mut inside, mut idx)) = cursor(document, offset) else {
        return Context::Code;
    };
    // From the inside outwards.
    let mut ways: Vec<Way> = Vec::new();
    let mut maps: Vec<NodeId> = Vec::new();
    loop {
        match document.kind(inside) {
            NodeKind::List if is_step_call(document, inside) => {
                return match idx {
                    1 => Context::StepType,
                    3 => of_step(document, specs, inside, (&ways, &maps)),
                    _ => Context::Code,
                };
            }
            NodeKind::List | NodeKind::Function => return Context::Code,
            NodeKind::Map if idx % 2 == 0 => {
                ways.push(Way::Key);
                maps.push(inside);
            }
            NodeKind::Map => {
                let key = document.tree.form(inside, idx - 1);
                ways.push(Way::Value(
                    key.map_or(String::new(), |key| name(document, key)),
                ));
                maps.push(inside);
            }
            _ => ways.push(Way::Item),
        }
        let outer = outermost(document, inside);
        match document.tree.parent(outer) {
            Some(parent) => {
                idx = document.tree.index(outer);
                inside = parent;
            }
            None if document.definition() == Some(inside) && document.is_definition() => {
                return of_definition(&ways, &maps);
            }
            None => return Context::Code,
        }
    }
}

/// Returns the innermost collection around an offset, and the index that a form there has.
pub(super) fn cursor(document: &Document, offset: usize) -> Option<(NodeId, usize)> {
    let inside = document.tree.around(offset)?;
    let before = document.tree.forms(Some(inside));
    let idx = before
        .take_while(|id| (document.tree.node(*id).end as usize) < offset)
        .count();
    // A token that ends at the offset is the one that is being written; a collection that ends there is complete.
    let at = document
        .tree
        .form(inside, idx)
        .map(|id| *document.tree.node(id));
    let is_behind = at.is_some_and(|node| {
        node.end as usize == offset
            && (node.kind.is_collection() || node.kind == NodeKind::Text)
            && node.is_closed
    });
    Some((inside, idx + usize::from(is_behind)))
}

/// Returns the outermost prefix of a form, or the form itself.
fn outermost(document: &Document, id: NodeId) -> NodeId {
    let is_prefix = |id: &NodeId| document.kind(*id).is_prefix();
    let path = document.tree.path(id).skip(1);
    path.take_while(is_prefix).last().unwrap_or(id)
}

pub(super) fn is_step_call(document: &Document, list: NodeId) -> bool {
    let head = document.tree.head(&document.text, list);
    head.is_some_and(|head| STEP_CALLS.contains(&head))
}

/// Returns the step call that is a list.
pub(super) fn step_call(document: &Document, list: NodeId) -> Option<StepCall> {
    if document.kind(list) != NodeKind::List || !is_step_call(document, list) {
        return None;
    }
    let mut forms = document.tree.forms(Some(list)).skip(1);
    Some(StepCall {
        type_: forms.next(),
        id: forms.next(),
        config: forms.next().map(|id| document.tree.bare(id)),
    })
}

/// Returns the step type of a call.
pub(super) fn spec_of(
    document: &Document,
    specs: &[&'static StepSpec],
    call: StepCall,
) -> Option<&'static StepSpec> {
    let kind = name(document, call.type_?);
    specs.iter().copied().find(|spec| spec.is_named(&kind))
}

/// Returns the name of a keyword or string.
pub(super) fn name(document: &Document, id: NodeId) -> String {
    document
        .text_of(id)
        .trim_start_matches(':')
        .trim_matches('"')
        .to_owned()
}

fn of_step(
    document: &Document,
    specs: &[&'static StepSpec],
    list: NodeId,
    (ways, maps): (&[Way], &[NodeId]),
) -> Context {
    let Some(call) = step_call(document, list) else {
        return Context::Code;
    };
    let Some(spec) = spec_of(document, specs, call) else {
        return Context::Code;
    };
    let operation = call
        .config
        .and_then(|config| operation(document, spec, config));
    let fields: Vec<&'static Field> = spec
        .fields
        .iter()
        .filter(|field| applies(spec, operation, field))
        .collect();
    let fields = fields.into_iter().chain(COMMON).collect();
    let owner = format!(":{}", spec.kind);
    let context = follow(fields, ways, maps, owner);
    match context {
        Context::Value(found) if ways.len() == 1 => Context::Value(FieldOf {
            operations: operations_of(spec, found.field),
            ..found
        }),
        other => other,
    }
}

/// Returns the operations that a field selects.
fn operations_of(spec: &StepSpec, field: &Field) -> &'static [Operation] {
    let operations = spec
        .operations
        .filter(|operations| field.is_called(operations.key));
    operations.map_or(&[], |operations| operations.all)
}

/// Returns the operation that a config literal selects.
pub(super) fn operation(
    document: &Document,
    spec: &StepSpec,
    config: NodeId,
) -> Option<&'static Operation> {
    let operations = spec.operations?;
    let field = spec.field(operations.key)?;
    let names = [field.name]
        .into_iter()
        .chain(field.aliases.iter().copied());
    let given = names
        .filter_map(|key| document.entry(config, &format!(":{key}")))
        .next();
    let given = given.map(|value| name(document, value));
    let usual = field
        .default
        .map(|default| default.trim_start_matches(':').to_owned());
    operations.find(&given.or(usual)?)
}

/// Tells whether a field belongs to an operation; without one, all fields do.
fn applies(spec: &StepSpec, operation: Option<&Operation>, field: &Field) -> bool {
    let (Some(operation), Some(operations)) = (operation, spec.operations) else {
        return true;
    };
    field.name == operations.key
        || operation.needs.contains(&field.name)
        || operation.takes.contains(&field.name)
}

fn of_definition(ways: &[Way], maps: &[NodeId]) -> Context {
    let owner = "a flow".to_owned();
    // The entries of `:invocations` are keyed by their ids.
    if let [rest @ .., Way::Value(_), Way::Value(key)] = ways
        && key == "invocations"
        && !rest.is_empty()
    {
        return follow(
            INVOCATION.iter().collect(),
            rest,
            &maps[..maps.len() - 2],
            owner,
        );
    }
    follow(DEFINITION.iter().collect(), ways, maps, owner)
}

/// Follows a way from the outside to its end, through the types of the fields.
fn follow(
    mut fields: Vec<&'static Field>,
    ways: &[Way],
    maps: &[NodeId],
    mut owner: String,
) -> Context {
    let mut maps = maps.iter().rev();
    let mut field: Option<&'static Field> = None;
    let mut types: Vec<FieldType> = Vec::new();
    for way in ways.iter().rev() {
        if field.is_some() {
            match way {
                Way::Item => {
                    types = types.iter().flat_map(|type_| items_of(*type_)).collect();
                    continue;
                }
                Way::Key | Way::Value(_) => {
                    fields = types.iter().flat_map(|type_| keys_of(*type_)).collect()
                }
            }
        }
        let Some(map) = maps.next().copied() else {
            return Context::Code;
        };
        match way {
            Way::Item => return Context::Code,
            Way::Key if fields.is_empty() => return Context::Code,
            Way::Key => return Context::Key(Keys { fields, map, owner }),
            Way::Value(key) => {
                let Some(found) = fields.iter().copied().find(|field| field.is_called(key)) else {
                    return Context::Code;
                };
                if field.is_some() || ways.len() > 1 {
                    owner = format!("{owner} :{}", found.name);
                }
                field = Some(found);
                types = alternatives(found.type_);
            }
        }
    }
    match field {
        Some(field) => Context::Value(FieldOf {
            field,
            operations: &[],
            owner,
        }),
        None => Context::Code,
    }
}

/// Returns the types that a type stands for.
pub(super) fn alternatives(type_: FieldType) -> Vec<FieldType> {
    let mut found = Vec::new();
    let mut open = vec![type_];
    while let Some(type_) = open.pop() {
        match type_ {
            FieldType::Either(types) => open.extend(types.iter().rev()),
            other => found.push(other),
        }
    }
    found
}

fn items_of(type_: FieldType) -> Vec<FieldType> {
    match type_ {
        FieldType::List(inner) => alternatives(*inner),
        _ => Vec::new(),
    }
}

fn keys_of(type_: FieldType) -> Vec<&'static Field> {
    match type_ {
        FieldType::Keys(fields) => fields.iter().collect(),
        _ => Vec::new(),
    }
}
