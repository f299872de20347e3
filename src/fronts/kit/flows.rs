//! The flows of the registry, as the kit reads them.

use std::collections::BTreeMap;
use std::rc::Rc;

use flowstone_flow::flow::Flow;
use flowstone_model::registry::{Target, VersionFiles};
use flowstone_project::registry::VersionRef;

use super::context::KitCall;
use super::error::KitError;

/// Returns the bound flow as it is now: its newest revision, or its file.
///
/// # Errors
/// `binding_missing`, and when the store cannot be read.
pub async fn bound_flow(cx: &KitCall<'_>) -> Result<Option<Rc<Flow>>, KitError> {
    flow_named(cx, cx.flow()?).await
}

/// Returns a flow as it is now: its newest revision, or its file.
///
/// # Errors
/// When the store cannot be read.
pub async fn flow_named(cx: &KitCall<'_>, slug: &str) -> Result<Option<Rc<Flow>>, KitError> {
    let registry = cx.registry();
    if registry.find(slug).await?.is_none() {
        let served = cx.catalog.flow(cx.engine, slug);
        return Ok(served.map(|served| served.loaded.flow.clone()));
    }
    let head = VersionRef::Target(Target::Draft);
    let head = registry.version(slug, &head).await?;
    let files = registry.files(&head).await?;
    Ok(flow_of(cx, slug, files))
}

/// Returns the flow that files make, if they make one.
pub fn flow_of(cx: &KitCall<'_>, slug: &str, files: VersionFiles) -> Option<Rc<Flow>> {
    let text = |(path, bytes)| Some((path, String::from_utf8(bytes).ok()?));
    let texts: BTreeMap<String, String> = files.into_iter().map(text).collect::<Option<_>>()?;
    let session = cx.engine.session();
    let checked = cx.engine.check_version(&session, slug, &texts);
    checked.loaded.map(|loaded| loaded.flow)
}
