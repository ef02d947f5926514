// Calls of the whole API with types that a generator made of the OpenAPI document; what is wrong must not compile.
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const [url = "", token = ""] = process.argv.slice(2);
const api = createClient<paths, "application/json" | "application/problem+json">({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });

const recorded = await api.POST("/v1/events", {
  body: {
    events: [
      { type: "order", key: "typescript-1", identifiers: { user_id: "typescript" }, properties: { total: 5, lines: [{ sku: "a" }] } },
    ],
  },
});
if (recorded.error) throw new Error(recorded.error.detail);

const person = await api.GET("/v1/people/{id}", { params: { path: { id: "user_id:typescript" } } });
if (person.error) throw new Error(person.error.detail);

const people = await api.GET("/v1/people", { params: { query: { limit: 1 } } });
if (people.error) throw new Error(people.error.detail);

const broadcast = await api.POST("/v1/broadcasts/{id}", {
  params: { path: { id: "typescript" } },
  body: { template: "none", variables: { percent: 20 }, audience: { tags: ["news"], when: { field: "traits.plan", equals: "pro" } } },
});

const missing = await api.GET("/v1/people/{id}", { params: { path: { id: "user_id:nobody" } } });

// @ts-expect-error: there is no such address
await api.GET("/v1/persons").catch(() => undefined);
// @ts-expect-error: the member is called `events`
const wrong: Parameters<typeof api.POST<"/v1/events", { body: { event: [] } }>>[1] = { body: { event: [] } };

console.log(
  JSON.stringify({
    accepted: recorded.data.accepted,
    status: recorded.data.receipts[0]?.status,
    same: recorded.data.receipts[0]?.person === person.data.id,
    people: people.data.people.map((each) => typeof each.id),
    broadcast: [broadcast.response.status, broadcast.error?.code],
    missing: [missing.response.status, missing.error?.code],
    wrong: Object.keys(wrong),
  }),
);
