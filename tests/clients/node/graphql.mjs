// The audit of GraphQL over HTTP by its reference implementation: {url, token} in, [{id, name, status, reason}] out.
import { readFileSync } from "node:fs";
import { serverAudits } from "graphql-http";

const { url, token } = JSON.parse(readFileSync(0, "utf-8"));

const fetchFn = (address, options = {}) => {
  const headers = new Headers(options.headers);
  headers.set("authorization", `Bearer ${token}`);
  return fetch(address, { ...options, headers });
};

const found = [];
for (const audit of serverAudits({ url, fetchFn })) {
  const result = await audit.fn();
  found.push({ id: audit.id, name: audit.name, status: result.status, reason: result.reason ?? "" });
}
console.log(JSON.stringify(found));
