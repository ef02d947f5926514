// Runs the conformance suite of the Model Context Protocol with the arguments of this command.
import { register } from "node:module";

// It names `fs.globSync`, which Node 20 does not have and testing a server does not need.
register("data:text/javascript," + encodeURIComponent(`
export async function load(url, context, next) {
  const loaded = await next(url, context);
  if (!url.endsWith("/conformance/dist/index.js")) return loaded;
  return { ...loaded, source: String(loaded.source).replace(/globSync as [\\w$]+,/, "") };
}`));
await import(new URL("../node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url));
