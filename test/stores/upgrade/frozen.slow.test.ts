import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { MIGRATIONS } from "#store/postgres/migrations/migrations.ts";
import { migrations } from "#store/sqlite/schema.ts";

/** The digests of the released migrations. For PostgreSQL, each has the version, the oldest version whose gateways work with it, and the digest. */
const SQLITE = ["57c2e795f1d366dc"];
const POSTGRES = [[8, 8, "f8b84a6724c61e64"]];
const ADD =
  "A version that was released never changes: add a migration. Only where this one was not released yet, put its digest here.";

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

it("every version of the SQLite schema is what it was when it was released", () => {
  expect(migrations.map(digestOf), ADD).toEqual(SQLITE);
});

it("every version of the PostgreSQL schema is what it was when it was released", () => {
  // The schema of the first version is no longer created.
  const [, ...steps] = MIGRATIONS;
  const digests = steps.map(({ version, oldest, sql }) => [version, oldest, digestOf(sql)]);
  expect(digests, ADD).toEqual(POSTGRES);
});
