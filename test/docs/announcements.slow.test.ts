import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it, onTestFinished } from "vitest";
import { freePort } from "#test/harness/ports.ts";
import { startProcess } from "#test/harness/process.ts";
import { at, blocksOf, paste } from "./blocks.ts";

it("shows a configuration, a receiver and a call that work together", async () => {
  const blocks = blocksOf("docs/announcements.md");
  const config = blocks.find(({ name }) => name === "gateway.json5")?.text ?? "";
  const receiver = blocks.find(({ name }) => name === "receiver.mjs")?.text ?? "";
  const call = blocks.find(({ language }) => language === "sh")?.text ?? "";
  const port = String(await freePort());
  const env = {
    OPS_SECRET: `whsec_${Buffer.from("the secret of the page").toString("base64")}`,
    WEBHOOK_TOKEN: "webhook-token-of-the-page",
    SLACK_WEBHOOK: "https://slack.invalid/services/T0/B0/of-the-page",
  };
  await using gateway = await startProcess({ config: config.replace("9000", port), env });
  const file = join(gateway.folder, "receiver.mjs");
  writeFileSync(file, receiver.replace("9000", port));
  const child = spawn(process.execPath, [file], { env: { ...env }, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill());
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  expect((await lines.next()).value).toBe("listening");

  const forged = { "webhook-id": "turn_1", "webhook-timestamp": String(Math.floor(Date.now() / 1_000)) };
  const headers = { ...forged, "webhook-signature": "v1,Zm9yZ2Vk" };
  expect((await fetch(`http://127.0.0.1:${port}/replies`, { method: "POST", headers, body: "{}" })).status).toBe(401);

  expect(JSON.parse(await paste(at(gateway.url, call), env))).toMatchObject({
    status: 200,
    delivery: "announce",
    channel: "ops",
  });
  expect((await lines.next()).value).toBe("Look at the alerts of the last hour.");
});
