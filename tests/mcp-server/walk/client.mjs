// Walks a behaviour tree with the client of the TypeScript SDK, over HTTP and over stdio, and compares every answer.
//
// Usage: node client.mjs FOLDER_OF_NODE_MODULES URL TOKEN PROGRAM FOLDER_OF_PROJECT
import assert from "node:assert";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [modules, url, token, program, cwd] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${modules}/@modelcontextprotocol/sdk/dist/esm/client/${path}.js`));
const { Client } = await load("index");
const { StreamableHTTPClientTransport } = await load("streamableHttp");
const { StdioClientTransport } = await load("stdio");
const calls = JSON.parse(readFileSync(new URL("calls.json", import.meta.url)));

// Puts known names in place of `@NAME`.
function filled(value, names) {
  if (typeof value === "string") return value.replace(/@(\w+)/g, (whole, name) => names[name] ?? whole);
  if (Array.isArray(value)) return value.map((item) => filled(item, names));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filled(item, names)]));
}

// Replaces what differs from walk to walk: `*` is any text, `@NAME` is a text that is new, and is known from then on.
function settled(expected, found, names) {
  if (typeof expected === "string" && typeof found === "string") {
    if (expected.endsWith("*") && found.startsWith(expected.slice(0, -1))) return found;
    const name = expected.match(/^@(\w+)$/)?.[1];
    if (name === undefined || Object.values(names).includes(found)) return expected;
    names[name] = found;
    return found;
  }
  if (Array.isArray(expected) && Array.isArray(found)) return expected.map((item, idx) => settled(item, found[idx], names));
  if (expected && found && typeof expected === "object" && typeof found === "object")
    return Object.fromEntries(Object.entries(expected).map(([key, item]) => [key, settled(item, found[key], names)]));
  return expected;
}

async function walk(name, client, uri) {
  const names = { URI: uri };
  for (const [idx, call] of calls.entries()) {
    const input = { trace_output: uri, ...filled(call.arguments, names) };
    const result = await client.callTool({ name: call.tool, arguments: input });
    const text = result.content[0].text;
    const isError = call.error !== undefined;
    const found = isError ? text : JSON.parse(text);
    const expected = settled(filled(isError ? call.error : call.answer, names), found, names);
    const place = `${name}, call ${idx + 1}: ${call.tool} ${JSON.stringify(input)}`;
    assert.deepStrictEqual({ isError: result.isError ?? false, found }, { isError, found: expected }, place);
    if (!isError && !Array.isArray(found)) assert.deepStrictEqual(result.structuredContent, found, place);
  }
  console.log(`TypeScript SDK over ${name}: ${calls.length} calls of a tree's tools`);
}

const transports = {
  HTTP: [new StreamableHTTPClientTransport(new URL(`${url}?tools=tree`), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }),
    "run://typescript"],
  stdio: [new StdioClientTransport({ command: program, args: ["mcp", "--tools", "tree"], cwd, stderr: "ignore" }),
    `file://${cwd}/typescript.json`],
};
for (const [name, [transport, uri]] of Object.entries(transports)) {
  const client = new Client({ name: "walk", version: "1" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  assert.deepStrictEqual(tools.map((tool) => tool.name), [...new Set(calls.map((call) => call.tool))].sort());
  await walk(name, client, uri);
  await client.close();
}
