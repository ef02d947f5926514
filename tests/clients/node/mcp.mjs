// The TypeScript SDK of the Model Context Protocol: {url, token, calls: [{name, arguments}]} in; the version agreed on,
// what is listed, and the result of each call out. Arguments may refer to a token of an earlier result: {"$confirm": n}.
import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { url, token, calls } = JSON.parse(readFileSync(0, "utf-8"));
const client = new Client({ name: "threadline-tests", version: "1" }, { capabilities: {} });
const headers = { authorization: `Bearer ${token}` };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));

const { tools } = await client.listTools();
const { resources } = await client.listResources();
const { prompts } = await client.listPrompts();
const results = [];
for (const { name, arguments: given } of calls) {
  const asked = { ...given };
  if (asked.token && asked.token.$confirm !== undefined)
    asked.token = results[asked.token.$confirm].structuredContent.confirm;
  results.push(await client.callTool({ name, arguments: asked }));
}
const read = await client.readResource({ uri: resources[0].uri });
const server = client.getServerVersion();
await client.close();
console.log(JSON.stringify({ server, tools, resources, prompts, results, read }));
