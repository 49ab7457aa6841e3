import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { browserTests, startPages, TOKENS } from "./browser.ts";

const SECRET = "slack-secret-of-the-pages-12";
const WEBHOOKS = {
  token: TOKENS.webhook,
  mappings: {
    slack: {
      match: { "body.command": "/deploy" },
      message: "Deploy {body.text}",
      verify: { type: "slack", secret: SECRET },
    },
  },
};

/** Sends the form of a command, as Slack signs it. */
async function sendCommand(url: string): Promise<void> {
  const body = "command=%2Fdeploy&text=checkout+to+prod&user_name=ada&trigger_id=13345224609.738474920.8088930838d8";
  const time = String(Math.floor(Date.now() / 1_000));
  const answer = await fetch(`${url}/hooks/slack`, {
    method: "POST",
    headers: {
      ...{ connection: "close", "content-type": "application/x-www-form-urlencoded" },
      "x-slack-request-timestamp": time,
      "x-slack-signature": `v0=${createHmac("sha256", SECRET).update(`v0:${time}:${body}`).digest("hex")}`,
    },
    body,
  });
  expect([answer.status, await answer.text()]).toEqual([200, ""]);
}

browserTests(({ open }) => {
  describe("the form of a webhook", () => {
    it("MUST be shown as fields, edited, replayed and tried like JSON", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      await sendCommand(gateway.url);
      await using page = await open(gateway, { path: "/console/activity" });
      await page.locator("tbody").getByRole("link", { name: "Deploy checkout to prod" }).click();
      await page.getByRole("tab", { name: "Request" }).click();
      await page.locator(".tree").getByText('"checkout to prod"').waitFor();
      await page.getByRole("button", { name: "Raw" }).click();
      await page.getByText("command=%2Fdeploy&text=checkout+to+prod").waitFor();
      await page.keyboard.press("e");
      const dialog = page.getByRole("dialog", { name: "Edit and replay" });
      const payload = dialog.getByLabel("Payload");
      await payload.fill((await payload.inputValue()).replace("to prod", "to staging"));
      await dialog.getByText("Deploy checkout to staging").waitFor();
      await dialog.getByRole("button", { name: "Replay with this body" }).click();
      await page.locator(".inspector-head").getByText("Deploy checkout to staging").waitFor();
      await page.goto(`${gateway.url}/console/activity`);
      await page.locator("tbody").getByRole("link", { name: "Deploy checkout to prod" }).click();
      await page.getByRole("button", { name: "Dry run" }).click();
      await page.getByRole("dialog", { name: "Dry run" }).getByRole("link", { name: "Build a mapping" }).click();
      await page.getByTitle("body.user_name", { exact: true }).getByText('"ada"').waitFor();
    });
  });
});
