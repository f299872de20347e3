// Lists tools, calls one and reads a resource with the client of the TypeScript SDK, over HTTP and over stdio.
//
// Usage: node client.mjs FOLDER_OF_NODE_MODULES URL TOKEN PROGRAM FOLDER_OF_PROJECT
import { pathToFileURL } from "node:url";

const [modules, url, token, program, cwd] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${modules}/@modelcontextprotocol/sdk/dist/esm/client/${path}.js`));
const { Client } = await load("index");
const { StreamableHTTPClientTransport } = await load("streamableHttp");
const { StdioClientTransport } = await load("stdio");

const transports = {
  HTTP: new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }),
  stdio: new StdioClientTransport({ command: program, args: ["mcp"], cwd, stderr: "ignore" }),
};
for (const [name, transport] of Object.entries(transports)) {
  const client = new Client({ name: "check", version: "1" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  if (!tools.some((tool) => tool.name === "test_simple_text")) throw new Error(`${name}: ${JSON.stringify(tools)}`);
  const called = await client.callTool({ name: "test_simple_text", arguments: {} });
  if (!called.content[0].text.includes("simple text response")) throw new Error(`${name}: ${JSON.stringify(called)}`);
  const listed = await client.callTool({ name: "workspace_runs_list", arguments: { limit: 1 } });
  if (listed.structuredContent.runs.length !== 1) throw new Error(`${name}: ${JSON.stringify(listed)}`);
  const read = await client.readResource({ uri: "test://static-text" });
  if (!read.contents[0].text.includes("static text")) throw new Error(`${name}: ${JSON.stringify(read)}`);
  await client.close();
  console.log(`TypeScript SDK over ${name}: ok`);
}
