//! `:require`: the tools that must be called before the final answer have to be among the model's tools.

use super::{MEMORY, Reader, near_name, tool_names};

impl Reader<'_> {
    /// Reports required tools that the model does not have, because they could never be called.
    pub(super) fn required(&mut self, has_memory: bool) {
        if self.is_open {
            return;
        }
        let envelope = self.envelope.clone();
        let require = &envelope.require;
        let lists = [
            ("steps", &require.steps, &envelope.steps),
            ("agents", &require.agents, &envelope.agents),
            ("mcp", &require.mcp, &envelope.mcp),
        ];
        let mut problems: Vec<(&str, String, String)> = Vec::new();
        for (key, ids, given) in lists {
            let missing = ids.iter().filter(|id| !given.contains(id) && key != "mcp");
            problems.extend(missing.map(|id| {
                (
                    key,
                    format!("`:{id}` is required, and the model does not have it"),
                    format!("add it: `:tools {{:{key} [:{id}]}}`"),
                )
            }));
        }
        let names: Vec<String> = tool_names(self.flow, &envelope);
        for name in &require.tool_names {
            let is_memory = has_memory && MEMORY.contains(&&**name);
            let has_unknown = !envelope.mcp.is_empty() || !envelope.flows.is_empty();
            if names.iter().any(|known| **known == **name) || is_memory || has_unknown {
                continue;
            }
            let hint = near_name(name, names.iter().map(String::as_str)).unwrap_or_else(|| {
                match names.is_empty() {
                    true => "it has no tools".to_owned(),
                    false => format!("it has {}", names.join(", ")),
                }
            });
            problems.push((
                "tool-names",
                format!("the tool `{name}` is required, and the model does not have it"),
                hint,
            ));
        }
        for (key, message, hint) in problems {
            self.path = vec![
                ":tools".to_owned(),
                ":require".to_owned(),
                format!(":{key}"),
            ];
            self.say(message, hint);
            self.path.clear();
        }
    }
}
