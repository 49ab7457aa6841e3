import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { currentSchemas, type Frozen } from "./schemas.ts";

/** `npx tsx test/stores/upgrade/freeze.ts`, while the newest version is not released: takes it as it is now. Older ones stay. */
const file = join(import.meta.dirname, "frozen.json");
const before = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Frozen) : undefined;
const now = currentSchemas(before);
const kept = <Of>(was: readonly Of[] = [], is: readonly Of[]) =>
  is.map((one, n) => (n < is.length - 1 ? (was[n] ?? one) : one));
const frozen = { sqlite: kept(before?.sqlite, now.sqlite), postgres: kept(before?.postgres, now.postgres) };
writeFileSync(file, `${JSON.stringify(frozen, null, 2)}\n`);
