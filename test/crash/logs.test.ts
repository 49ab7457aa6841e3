import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { verifyLogs } from "./logs.ts";
import { SECRETS } from "./requests.ts";

const nodeWith = (text: string) => ({ logFile: "log", url: "http://127.0.0.1:1", log: () => text });
const promisesIn = (text: string) =>
  verifyLogs({ nodes: [nodeWith(text)], secrets: ["gw_minted"] }).map((one) => one.promise);

test("a log of what happened breaks no promise", () => {
  expect(promisesIn('{"event":"request","caller":"crash","status":401}\n{"event":"listening"}')).toEqual([]);
});

test.each([...Object.values(SECRETS), "gw_minted", "authorization: Bearer abcdefgh", "guess-7-of-somebody"])(
  "tells of %s in a log",
  (secret) => {
    expect(promisesIn(`{"event":"request","detail":"it was ${secret}."}`)).toContain("no secret in the log");
  },
);

test("tells of what nobody expected, and of a secret in another file", () => {
  expect(promisesIn('{"event":"unexpected.error"}')).toEqual(["nothing unexpected happens"]);
  const folder = mkdtempSync(join(tmpdir(), "gateway-logs-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "server.log");
  writeFileSync(file, `STATEMENT: select '${SECRETS.key}'`);
  expect(verifyLogs({ nodes: [], files: [file] }).map(({ ids }) => ids)).toEqual([["key", file]]);
});
