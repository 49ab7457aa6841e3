import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { startProcess } from "#test/harness/process.ts";
import { browserTests, callers, startPages, TOKENS, untilLive } from "./browser.ts";

const run = promisify(execFile);

browserTests(({ open }) => {
  it("an operator's day, from the printed link to signing out", async () => {
    await using gateway = await startProcess();
    // The banner prints a link that signs in.
    const link = gateway.out.find((line) => line.includes("/console#code=")) ?? "";
    await using page = await open(gateway, { path: link.slice(link.indexOf("/console")), token: "" });
    await page.getByRole("heading", { name: "Live" }).waitFor();
    expect(page.url()).toBe(`${gateway.url}/console`);

    // Create a key, and use it with the command that the page shows.
    await page.getByRole("link", { name: "Settings" }).first().click();
    await page.getByRole("button", { name: "Create a key" }).click();
    await page.getByLabel("Name").fill("laptop");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByText("Copy the key now.").waitFor();
    const command = String(await page.locator("dialog pre code").first().textContent());
    await page.getByRole("button", { name: /copied the key/ }).click();
    await page.getByRole("link", { name: "Activity" }).first().click();
    const { stdout } = await run("bash", ["-c", command]);
    expect(JSON.parse(stdout)).toMatchObject({ status: "completed" });

    // The request appears automatically; its timeline shows the result.
    await page
      .getByRole("link", { name: /completed/ })
      .first()
      .click();
    await page.getByText(/Reply completed in/).waitFor();

    // A webhook arrives, and is sent again.
    const post = (to: string, body: object, headers: Record<string, string> = {}) =>
      fetch(gateway.url + to, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      });
    const shared = { authorization: `Bearer ${gateway.secrets.WEBHOOK_TOKEN}` };
    const { deliveryId } = (await (await post("/hooks/agent", { message: "Good morning" }, shared)).json()) as {
      deliveryId: string;
    };
    await page.keyboard.press("/");
    await page.getByRole("combobox", { name: "Search" }).fill(deliveryId);
    await page.getByRole("option", { name: /Request,/ }).click();
    await page.waitForURL(new RegExp(deliveryId));
    await page.getByRole("button", { name: "Replay", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Replay", exact: true }).click();
    await page.getByText("replay of").waitFor();

    // A refused one shows the reason.
    await post("/hooks/agent", { message: "Let me in" }, { authorization: "Bearer nobody-has-this-token" });
    await page.goto(`${gateway.url}/console/activity?outcome=refused`);
    await page
      .getByRole("link", { name: /refused \/hooks\/agent/ })
      .first()
      .click();
    await page.getByText("Refused: unknown token").waitFor();

    // A conversation continues, is compacted, and is deleted.
    await page.goto(`${gateway.url}/console/sessions`);
    await page.getByRole("link", { name: /chat:/ }).first().click();
    await page.getByRole("textbox", { name: "Message" }).fill("And the weather?");
    await page.keyboard.press("Enter");
    const messages = page.getByRole("list", { name: "Messages" }).getByRole("listitem");
    await expect.poll(() => messages.count()).toBe(4);
    await page.getByRole("button", { name: "Compact" }).click();
    await page.getByLabel("Newest messages to keep").selectOption("1");
    await page.getByRole("dialog").getByRole("button", { name: "Compact" }).click();
    await page.getByText("Compacted.").waitFor();
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete the session" }).click();
    await page.getByRole("link", { name: /chat:/ }).first().waitFor({ state: "detached" });

    // The key is revoked, and its owner is signed out.
    await page.goto(`${gateway.url}/console/settings`);
    await page
      .getByRole("row", { name: /laptop/ })
      .getByRole("button", { name: "Revoke" })
      .click();
    await page
      .getByRole("dialog")
      .getByRole("button", { name: /Revoke/ })
      .click();
    await page.getByRole("row", { name: /laptop/ }).waitFor({ state: "detached" });
    const again = JSON.parse((await run("bash", ["-c", command])).stdout) as { status: number };
    expect(again.status).toBe(401);
    await page.getByRole("button", { name: "Sign out" }).first().click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  });

  it("an operator's day with mappings, from a signed webhook to an interrupted stream", async () => {
    const secret = "github-secret-of-the-day-1234";
    await using gateway = await startPages({
      agents: { main: { backend: "echo", echo: { delayMs: 600, chunks: 6 } } },
      webhooks: {
        token: TOKENS.webhook,
        mappings: {
          push: {
            match: { "headers.x-github-event": "push", "body.ref": "refs/heads/main" },
            message: "{body.pusher.name} pushed",
            session: "webhook:github",
            verify: { type: "github", secret },
          },
          deploy: { match: { "body.kind": "deploy" }, message: "{body.service} is out", session: "webhook:deploys" },
        },
      },
    });
    await using page = await open(gateway, { path: "/console/webhooks?send=push" });
    let cut = () => {};
    await page.routeWebSocket(/\/rpc\/ws$/, (socket) => {
      const server = socket.connectToServer();
      cut = () => {
        void server.close();
        void socket.close({ code: 4000 });
      };
    });
    await page.reload();
    const dialog = page.getByRole("dialog");

    // A webhook with a signature like GitHub's, and one with another secret.
    await dialog.getByLabel(/GitHub secret/).fill(secret);
    await dialog.getByRole("button", { name: "Sign and send" }).click();
    await dialog.getByText("200").first().waitFor();
    await dialog.getByLabel(/GitHub secret/).fill("another secret than the mapping's");
    await dialog.getByRole("button", { name: "Sign and send" }).click();
    await dialog.getByText("401").first().waitFor();
    await page.goto(`${gateway.url}/console/activity?outcome=refused`);
    await page
      .getByRole("link", { name: /refused \/hooks\// })
      .first()
      .click();
    await page.getByText("Compare the secret of the mapping's verify").waitFor();

    // A request that no mapping matches: its dry run shows the reason, an edited one starts a turn.
    const { deliveryId } = await callers(gateway).hook("/hooks/deploy", { kind: "rollback", service: "billing" });
    await page.goto(`${gateway.url}/console/d/${deliveryId}`);
    await page.getByRole("heading", { name: "Activity" }).waitFor();
    await page.getByRole("button", { name: "Dry run" }).click();
    await dialog.getByText("No mapping matches").waitFor();
    await dialog.getByRole("cell", { name: "rollback" }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("e");
    const payload = dialog.getByLabel("Payload");
    await payload.fill('{ "kind": "deploy", "service": ');
    await dialog.getByText(/Invalid JSON/).waitFor();
    await dialog.getByRole("button", { name: /The payload is not valid JSON/ }).waitFor();
    await payload.fill('{ "kind": "deploy", "service": "billing" }');
    await dialog.getByText("billing is out").waitFor();
    await dialog.getByRole("button", { name: "Replay with this body" }).click();
    await page.getByText(/^Body edited/).waitFor();
    await page.getByText("Reply completed in").waitFor();
    await page
      .getByRole("article")
      .getByRole("link", { name: String(deliveryId) })
      .waitFor();

    // A reply is streamed, and continues after the socket is disconnected.
    await page.goto(`${gateway.url}/console/s/webhook%3Adeploys`);
    await untilLive(page);
    await page.getByRole("textbox", { name: /Message/ }).fill("one two three four five six");
    await page.keyboard.press("Enter");
    const reply = page.locator(".message[data-role='assistant']").last().locator(".markdown, .plain-text");
    await expect.poll(() => reply.textContent()).toMatch(/^one/);
    cut();
    await expect.poll(async () => (await reply.textContent())?.trim()).toBe("one two three four five six");
    expect(await page.locator(".message").count()).toBe(4);
  });
});
