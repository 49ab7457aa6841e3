import { describe, expect, test } from "vitest";
import { shareGateway } from "#test/harness/gateway.ts";
import { checkedFetch } from "#test/harness/rest.ts";
import { isFields } from "./spec.ts";

const gateway = await shareGateway();

/** Values in the documents that are examples, and not schemas. */
const SHOWN = ["example", "examples", "default", "const", "enum"];

function bareArrays(node: unknown, at: string): string[] {
  if (Array.isArray(node)) return node.flatMap((item, n) => bareArrays(item, `${at}/${n}`));
  if (!isFields(node)) return [];
  const isArray = [node.type].flat().includes("array");
  const below = Object.entries(node).flatMap(([key, value]) =>
    SHOWN.includes(key) && !at.endsWith("/properties") ? [] : bareArrays(value, `${at}/${key}`),
  );
  return isArray && node.items === undefined && node.prefixItems === undefined ? [at, ...below] : below;
}

describe.each(["/openapi.json", "/openrpc.json"])("%s as served", (path) => {
  test("has the item type of every array", async () => {
    const served: unknown = await (await checkedFetch(new Request(gateway.url + path))).json();
    expect(JSON.stringify(served)).toContain('"array"');
    expect(bareArrays(served, "")).toEqual([]);
  });
});
