//! The flows of a project as documents: what they are called, what their steps are called, what they tell models.
//!
//! A file is read each time, and taken apart when its contents have changed.

use std::collections::{HashMap, HashSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flowstone_lang::session::Session;
use flowstone_lang::value::Value;

use super::cut;
use flowstone_engine::disk;
use flowstone_flow::flow::{Flow, name_of};
use flowstone_model::codec::digest_bytes;
use flowstone_model::json::items;
use flowstone_model::ports::{SearchDoc, SearchTarget, StoreError, Stores};
use flowstone_model::rooted::open_regular;

/// A larger file is no flow that a person wrote.
const FILE_MAX: u64 = 4 << 20;
/// How much of a flow is indexed, in bytes.
const BODY_MAX: usize = 64 << 10;
/// Documents that are handed over together.
const TOGETHER: usize = 200;
/// Keys whose texts are read by models or people.
const PROSE: &[&str] = &[
    "content",
    "description",
    "instructions",
    "label",
    "message",
    "objective",
    "prompt",
    "system",
    "title",
];

/// A file as it is now.
struct Seen {
    path: PathBuf,
    /// From the project's folder.
    name: String,
    version: String,
}

/// Indexes the flows that have changed, and returns how many.
pub(super) async fn refresh(stores: &Stores, project_root: &Path) -> Result<u64, StoreError> {
    let root = project_root.to_owned();
    let seen = tokio::task::spawn_blocking(move || look(&root)).await;
    let seen = seen.map_err(|error| StoreError::Internal(error.to_string()))?;
    let known = stores.search.versions(SearchTarget::Flows).await?;
    let names: HashSet<&str> = seen.iter().map(|file| &*file.name).collect();
    let mut gone: Vec<String> = known
        .iter()
        .map(|(id, _)| id.clone())
        .filter(|id| !names.contains(&**id))
        .collect();
    let known: HashMap<&str, &str> = known
        .iter()
        .map(|(id, version)| (&**id, &**version))
        .collect();
    let changed: Vec<&Seen> = seen
        .iter()
        .filter(|file| known.get(&*file.name) != Some(&&*file.version))
        .collect();
    if changed.is_empty() && !gone.is_empty() {
        let gone = std::mem::take(&mut gone);
        stores
            .search
            .put(SearchTarget::Flows, Vec::new(), gone)
            .await?;
    }
    for part in changed.chunks(TOGETHER) {
        let docs = part.iter().map(|file| doc(file)).collect();
        let gone = std::mem::take(&mut gone);
        stores.search.put(SearchTarget::Flows, docs, gone).await?;
    }
    Ok(changed.len() as u64)
}

/// Reads a file that is not too large.
fn read_small(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_regular(path).ok()?;
    file.take(FILE_MAX + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= FILE_MAX).then_some(bytes)
}

fn look(root: &Path) -> Vec<Seen> {
    let mut seen = Vec::new();
    for path in disk::files_of(root) {
        let Some(bytes) = read_small(&path) else {
            continue;
        };
        let name = path.strip_prefix(root).unwrap_or(&path);
        let name = name.to_string_lossy().replace('\\', "/");
        // Settings are no flow, and name secrets.
        if name == "flowstone.edn" {
            continue;
        }
        seen.push(Seen {
            version: digest_bytes(&bytes),
            name,
            path,
        });
    }
    seen
}

fn doc(file: &Seen) -> SearchDoc {
    let loaded = disk::load(&Session::new(), &file.path, &file.name).loaded;
    let stem = file.path.file_stem().unwrap_or_default().to_string_lossy();
    let flow = loaded.as_ref().map(|loaded| &*loaded.flow);
    let slug = flow.map_or_else(|| stem.to_string(), |flow| flow.slug.to_string());
    let name = flow.and_then(|flow| flow.name.as_deref());
    let mut facts = vec![("slug".to_owned(), slug.clone())];
    let description = flow.and_then(|flow| flow.description.as_deref());
    facts.extend(description.map(|text| ("description".to_owned(), cut(text, 1_000).to_owned())));
    SearchDoc {
        id: file.name.clone(),
        version: file.version.clone(),
        title: name.unwrap_or(&slug).to_owned(),
        tags: flow.map_or_else(String::new, |flow| tags(&slug, flow)),
        body: flow.map_or_else(String::new, |flow| cut(&prose(flow), BODY_MAX).to_owned()),
        facts,
    }
}

fn tags(slug: &str, flow: &Flow) -> String {
    let mut tags = vec![slug.to_owned()];
    let declared = flow.definition.get("tags").and_then(items);
    let slots = flow
        .requires
        .as_vector()
        .into_iter()
        .flat_map(|slots| slots.iter());
    let slots = slots.filter_map(|slot| slot.get("slot").and_then(name_of));
    let declared = declared.unwrap_or_default();
    let declared = declared.iter().filter_map(name_of);
    tags.extend(declared.chain(slots).map(|tag| tag.to_string()));
    tags.join(" ")
}

/// Returns what a flow says: its description, names and ids of its parts, and texts for models and people.
fn prose(flow: &Flow) -> String {
    let mut lines: Vec<String> = Vec::new();
    lines.extend(flow.description.as_deref().map(str::to_owned));
    gather(&flow.definition, 0, &mut lines);
    if flow.definition.is_nil() {
        gather(&flow.body, 0, &mut lines);
    }
    let mut seen = HashSet::new();
    lines.retain(|line| !line.trim().is_empty() && seen.insert(line.clone()));
    lines.join("\n")
}

/// No definition nests deeper.
const DEPTH: usize = 200;

fn gather(value: &Value, depth: usize, lines: &mut Vec<String>) {
    if depth > DEPTH {
        return;
    }
    if let Some(map) = value.as_map() {
        for (key, value) in map.iter() {
            let key = name_of(key).unwrap_or_else(|| "".into());
            match value.as_str() {
                Some(text) if PROSE.contains(&&*key) => lines.push(text.to_owned()),
                _ if matches!(&*key, "id" | "slot" | "name") => {
                    lines.extend(name_of(value).map(|name| name.to_string()));
                }
                // How a connection shows who it is.
                _ if matches!(&*key, "auth" | "headers" | "secrets" | "secret-ref") => {}
                _ => gather(value, depth + 1, lines),
            }
        }
        return;
    }
    let Some(items) = items(value) else {
        return;
    };
    if let [head, kind, id, ..] = &items[..]
        && head
            .as_symbol()
            .is_some_and(|head| head.to_string() == "flow/step")
    {
        let names = [name_of(kind), name_of(id)];
        let names: Vec<String> = names
            .into_iter()
            .flatten()
            .map(|it| it.to_string())
            .collect();
        lines.push(names.join(" "));
    }
    items.iter().for_each(|item| gather(item, depth + 1, lines));
}

#[cfg(test)]
mod tests {
    use super::{doc, look};

    #[test]
    fn a_flow_says_what_it_does() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        write("flowstone.edn", "{:connections {}}");
        write("flows/broken.edn", "{:slug ");
        write(
            "flows/refunds.edn",
            r#"{:slug :refunds :name "Refund desk" :description "Answers refund mail." :tags ["money"]
                :concurrency {:type :singleton :on-new-version :coexist}
                :requires [{:slot :crm :type :http-api :label "Customers" :auth {:type :bearer :secret-ref :hush}}]
                :flow '(let [a (flow/step :llm :draft-answer {:prompt "Write politely." :model "m"})] a)}"#,
        );
        let seen = look(root.path());
        let docs: Vec<_> = seen.iter().map(doc).collect();
        let [broken, refunds] = &docs[..] else {
            panic!("{docs:?}");
        };
        assert_eq!(
            (&*broken.id, &*broken.title),
            ("flows/broken.edn", "broken")
        );
        assert_eq!(refunds.title, "Refund desk");
        assert_eq!(refunds.tags, "refunds money crm");
        for words in [
            "Answers refund mail.",
            "llm draft-answer",
            "Write politely.",
            "Customers",
        ] {
            assert!(refunds.body.contains(words), "{words}: {}", refunds.body);
        }
        assert!(!refunds.body.contains("hush"), "{}", refunds.body);
    }
}
