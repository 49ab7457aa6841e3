import type { OpenAPIV3 } from "express-openapi-validator/dist/framework/types.js";
import { expect, test } from "vitest";
import { loadOpenApiValidator } from "#wire/rest/openapi-validator.ts";

test("express-openapi-validator creates our validator of documents in place of its own", async () => {
  const { middleware } = loadOpenApiValidator();
  const paths = { "/": { get: { responses: { 200: { description: "" } }, tags: 1 } } };
  const apiSpec = { openapi: "3.1.0", info: { title: "", version: "" }, paths } as unknown as OpenAPIV3.DocumentV3_1;
  // Its own validator would refuse the number in the place of tags.
  const [first] = middleware({ apiSpec, validateApiSpec: true, validateRequests: false }) as ((
    req: object,
    res: object,
    next: (error?: unknown) => void,
  ) => void)[];
  const error = await new Promise((resolve) => first?.({ path: "/", method: "GET", baseUrl: "" }, {}, resolve));
  expect(error).toBeUndefined();
});
