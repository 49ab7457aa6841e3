import { Ajv2020 } from "ajv/dist/2020.js";
import { afterEach, describe, expect, test, vi } from "vitest";
import openapi from "#generated/openapi.json" with { type: "json" };
import { restRoutes } from "#test/harness/contract.ts";
import { SECRETS, shareGateway } from "#test/harness/gateway.ts";
import { restPart } from "#wire/pages/documents.ts";
import { createRequestValidation } from "#wire/rest/rest-validation.ts";

// Surprises of express and express-openapi-validator that the gateway avoids.

const gateway = await shareGateway();
afterEach(() => {
  vi.restoreAllMocks();
});

/** Called for every compiled schema, each under its own key. */
function spyOnSchemas() {
  return vi.spyOn(Ajv2020.prototype, "addSchema");
}

describe("an operation below path-level servers passes without validation and without authentication", () => {
  test("so the contract has one server, /, and full paths", () => {
    expect(openapi.servers.map(({ url }) => url)).toEqual(["/"]);
    for (const [path, item] of Object.entries(openapi.paths)) {
      expect(JSON.stringify(item), path).not.toContain('"servers"');
      expect(path).toMatch(/^\/($|api\/v1\/|v1\/|hooks|docs$|healthz$|readyz$|metrics$|open(api|rpc)\.json$)/);
    }
  });

  test.each(restRoutes)("so $operation is validated against the contract", async ({ operation, method, path }) => {
    const target = `${path.replaceAll(/\{\w+\}/g, "x")}?unknown=1`;
    const key = operation === "codes.redeem" ? gateway.gateway.signInCode(SECRETS.consoleToken) : SECRETS.consoleToken;
    const reply = await gateway.rest.send(method, target, { key, ...(method === "POST" && { body: {} }) });
    expect(reply.error).toMatch(/^(invalid-request)$/);
  });
});

describe("it compiles the schema of all OpenAPI documents, and each one that ours contains, before its first request", () => {
  test("so it does not get the former, and of the latter only the schemas for requests", async () => {
    const added = spyOnSchemas();
    const validate = await createRequestValidation(restPart(openapi));
    for (const route of restRoutes) {
      await validate({ method: route.method, url: route.path, headers: {} }, undefined, route).catch(() => {});
    }
    expect(added).toHaveBeenCalled();
    expect(JSON.stringify(added.mock.calls.map(([schema]) => schema))).not.toContain("spec.openapis.org");
    const { components } = restPart(openapi) as typeof openapi;
    expect(Object.keys(components.schemas)).toContain("ChatRequest");
    expect(Object.keys(components.schemas).length).toBeLessThan(Object.keys(openapi.components.schemas).length / 3);
  });
});

describe("it caches its validators by the complete Content-Type: each spelling is compiled again, and remains in memory", () => {
  const spellings = Array.from(
    { length: 20 },
    (_, n) => `application/json; charset=utf-8${";".repeat(n)}${" ".repeat(n % 3)}`,
  );

  test("so it sees only one spelling", async () => {
    const added = spyOnSchemas();
    for (const type of spellings) {
      const headers = { "content-type": type };
      expect((await gateway.rest.call("chat.send", { headers, body: { message: "hi" } })).status).toBe(200);
    }
    for (let n = 0; n < 5; n++) {
      const headers = { "content-type": `application/json; x=${n}` };
      expect((await gateway.rest.call("chat.send", { headers, body: { message: "hi" } })).status).toBe(415);
      expect((await gateway.rest.call("skills.list", { headers })).status).toBe(200);
    }
    expect(added).not.toHaveBeenCalled();
  });
});

describe("it does not support 406", () => {
  test("so a client that accepts another type gets the existing one", async () => {
    const headers = { accept: "image/png" };
    expect((await gateway.rest.call("skills.list", { headers })).headers.get("content-type")).toBe("application/json");
  });
});
