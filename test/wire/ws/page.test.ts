import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { errors } from "#generated/errors.ts";
import { socketCalls } from "#generated/validators/socket-calls.js";
import { blocksOf } from "#test/docs/blocks.ts";
import { startGateway } from "#test/harness/gateway.ts";
import { root } from "#test/harness/process.ts";
import { pushShapes } from "#test/harness/shapes.ts";
import { CLOSE } from "#wire/socket/connection.ts";
import { checkMessage, openSocket } from "./socket.ts";

const page = readFileSync(join(root, "docs/websocket.md"), "utf8");
const spec = readFileSync(join(root, "specs/pushes.yaml"), "utf8");

/** Values that differ between gateways, by their names on the page. */
const OWN = new Set(["cursor", "messageId", "turnId", "at", "desk", "gateway"]);

/** Compares the received messages with the page, and records which value replaces which of the page's. */
function compare(shown: unknown, came: unknown, names: Map<unknown, unknown>, key = ""): void {
  if (typeof shown === "object" && shown !== null) {
    expect(Object.keys(came as object)).toEqual(Object.keys(shown));
    for (const [name, value] of Object.entries(shown))
      compare(value, (came as Record<string, unknown>)[name], names, name);
  } else if (OWN.has(key)) {
    expect(typeof came).toBe(typeof shown);
    if (key !== "at") expect(came).toBe(names.get(shown) ?? came);
    names.set(shown, came);
  } else expect(came).toEqual(shown);
}

test("the exchanges of the page take place as shown, line by line", async () => {
  await using gateway = await startGateway();
  const names = new Map<unknown, unknown>();
  const examples = blocksOf("docs/websocket.md").filter(({ language }) => language === "");
  expect(examples.length).toBe(4);
  for (const { text } of examples) {
    using socket = await openSocket(gateway);
    for (const line of text.trim().split("\n")) {
      const shown = JSON.parse(line.slice(3));
      if (line.startsWith(">> ")) {
        let sent = line.slice(3);
        for (const [ours, theirs] of names) sent = sent.replaceAll(`"${ours}"`, `"${theirs}"`);
        socket.ws.send(sent);
        continue;
      }
      checkMessage(shown);
      const next = await socket.until(() => socket.messages.shift());
      compare(shown, next, names);
    }
  }
});

test("the page names every push of the contract, and only errors and close codes that exist", () => {
  for (const name of pushShapes().keys()) expect(page).toContain(`| \`${name}\` |`);
  for (const name of Object.keys(socketCalls).filter((call) => !call.endsWith(".result")))
    expect(page).toContain(`| \`${name}\` |`);
  for (const [, name] of page.matchAll(/\| -32\d+ `([a-z-]+)`/g)) expect(errors).toHaveProperty(name as string);
  const codes = new Set([...page.matchAll(/^\| (\d{4})/gm)].map(([, code]) => Number(code)));
  for (const code of Object.values(CLOSE)) expect(codes.has(code) || code === CLOSE.unanswered).toBe(true);
  expect(spec).toContain("rpc.subscribe.result");
});
