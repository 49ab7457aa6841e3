import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { type ErrorName, errors } from "#generated/errors.ts";
import { type Route, routes } from "#generated/routes.ts";
import { root, startProcess } from "#test/harness/process.ts";
import { senders } from "#test/harness/senders.ts";
import { blocksOf } from "./blocks.ts";
import { configOfPage } from "./recipes.ts";

const PAGE = "docs/webhooks.md";
const run = promisify(execFile);
function textOf(language: string, name: string): string {
  const block = blocksOf(PAGE).find((each) => each.language === language && each.name === name);
  if (!block) throw new Error(`${PAGE} has no block ${language} ${name}`);
  return block.text;
}
function shown(name: string) {
  return JSON.parse(textOf("json", name)) as Record<string, unknown>;
}

/** Removes the parts of an answer that change each time. */
function withoutIds(answer: Record<string, unknown>) {
  return Object.fromEntries(Object.entries(answer).filter(([name, value]) => !isId(name, value)));
}
function isId(name: string, value: unknown) {
  return /^(turnId|deliveryId|eventId|request_id)$/.test(name) || /^webhook:[0-9A-Z]{26}$/.test(String(value));
}

it("works from the first block to the last", async () => {
  const env: Record<string, string> = {
    WEBHOOK_TOKEN: "webhook-token-of-the-page",
    REST_API_KEY: "rest-key-of-the-page",
    GITHUB_SECRET: senders.github.makeSecret("page"),
    NEW_WEBHOOK_TOKEN: "new-webhook-token-of-the-page",
  };
  const config = await configOfPage(PAGE, ["gateway.json5", "github-push"]);
  await using gateway = await startProcess({ config: JSON.stringify(config), env });
  const paste = async (name: string, given: Record<string, string> = {}) => {
    const script = `set -euo pipefail\n${textOf("sh", name).replaceAll("127.0.0.1:18789", new URL(gateway.url).host)}`;
    const { stdout } = await run("bash", ["-c", script], { env: { PATH: process.env.PATH, ...env, ...given } });
    return JSON.parse(stdout) as Record<string, unknown>;
  };
  /** The block's answer, which must be the one on the page. */
  const asShown = async (name: string) => {
    const answer = await paste(name);
    expect(withoutIds(answer)).toEqual(withoutIds(shown(name)));
    expect(Object.keys(answer)).toEqual(Object.keys(shown(name)));
    return answer;
  };

  const agent = await asShown("agent");
  const turn = await paste("turn", { TURN_ID: String(agent.turnId) });
  expect(turn).toMatchObject({ status: "completed", reply: "Look at the alerts of the last hour." });
  await asShown("wake");

  const mapped = await asShown("mapped");
  expect(await paste("turn", { TURN_ID: String(mapped.turnId) })).toMatchObject({
    reply: "The build of main failed in test. Find out why.",
  });
  const unmatched = await asShown("unmatched");

  const tried = await paste("dry-run");
  const [, ...others] = tried.mappings as object[];
  expect({ ...tried, mappings: (tried.mappings as object[]).slice(0, 1) }).toEqual(shown("dry-run"));
  expect(others).toMatchObject([{ mapping: "github-push" }]);

  const signed = await paste("signed");
  expect(signed).toMatchObject({ mapping: "github-push", message: "turn started" });
  expect(await paste("turn", { TURN_ID: String(signed.turnId) })).toMatchObject({
    reply: expect.stringMatching(/^ada pushed to ada\/clock: Mend the clock\nChanges: https:.*2\nSay in three/),
  });

  expect(await paste("deliveries")).toMatchObject({ deliveries: [{ delivery_id: unmatched.deliveryId }] });
  const delivery = { DELIVERY_ID: String(mapped.deliveryId) };
  expect(await paste("timeline", delivery)).toMatchObject({
    outcome: "completed",
    mapping: "build-failed",
    timeline: expect.arrayContaining([expect.objectContaining({ name: "mapping.tried" })]),
  });
  expect(await paste("replay", delivery)).toMatchObject({ replay_of: mapped.deliveryId, mapping: "build-failed" });

  const refused = await fetch(`${gateway.url}/hooks/agent`, { method: "POST" });
  expect(withoutIds((await refused.json()) as Record<string, unknown>)).toEqual(withoutIds(shown("refused")));
});

it("answers the requests of a burst as shown", async () => {
  const env = { WEBHOOK_TOKEN: "webhook-token-of-the-page", REST_API_KEY: "rest-key-of-the-page" };
  const secret = senders.github.makeSecret("page");
  const config = await configOfPage(PAGE, ["gateway.json5", "github-pull-request"]);
  await using gateway = await startProcess({
    config: JSON.stringify(config),
    env: { ...env, GITHUB_SECRET: secret },
  });
  const body = JSON.stringify({
    action: "synchronize",
    number: 7,
    repository: { full_name: "ada/clock" },
    pull_request: { draft: false },
  });
  const push = async (id: string) => {
    const headers = { "content-type": "application/json", "x-github-event": "pull_request" };
    const signature = await senders.github.sign(secret, body, { id });
    const url = `${gateway.url}/hooks/github-pull-request`;
    const response = await fetch(url, { method: "POST", headers: { ...headers, ...signature }, body });
    return (await response.json()) as Record<string, unknown>;
  };
  const [first, joined] = [await push("first"), await push("second")];
  expect(withoutIds(joined)).toEqual(withoutIds(shown("joined")));
  expect(Object.keys(joined)).toEqual(Object.keys(shown("joined")));
  expect(joined.turnId).toBe(first.turnId);
});

it("changes the token as described, and no request is refused meanwhile", async () => {
  const env = {
    WEBHOOK_TOKEN: "webhook-token-of-the-page",
    NEW_WEBHOOK_TOKEN: "new-webhook-token-of-the-page",
    REST_API_KEY: "rest-key-of-the-page",
  };
  const config = await configOfPage(PAGE, ["gateway.json5", "rotation"]);
  await using gateway = await startProcess({ config: JSON.stringify(config), env });
  for (const token of [env.NEW_WEBHOOK_TOKEN, env.WEBHOOK_TOKEN]) {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const { status } = await fetch(`${gateway.url}/hooks/agent`, { method: "POST", headers, body: '{"message":"x"}' });
    expect(status).toBe(200);
  }
});

it("describes every error of a webhook, with its status", () => {
  const section = textBetween("## Answers and errors", "## Sending again");
  const told = new Map<string, number[]>();
  for (const [, statuses = "", names = ""] of section.matchAll(/^\| ([\d, ]+) \| ([^|]*) \|/gm))
    for (const [, name = ""] of names.matchAll(/`([a-z-]+)`/g)) told.set(name, statuses.split(", ").map(Number));
  const possible = new Set(
    (routes as readonly Route[]).filter(({ surface }) => surface === "hooks").flatMap((route) => route.errors),
  );
  // These errors occur before a request is known to be a webhook.
  for (const name of ["uri-too-long", "headers-too-large"] as const) possible.delete(name);
  expect([...told.keys()].filter((name) => name !== "not-found").sort()).toEqual([...possible].sort());
  for (const [name, statuses] of told)
    expect([name, statuses]).toEqual([name, expect.arrayContaining([errors[name as ErrorName].status])]);
});

function textBetween(from: string, to: string): string {
  const page = readFileSync(join(root, PAGE), "utf8");
  return page.slice(page.indexOf(from), page.indexOf(to));
}

it("links only to existing sections", () => {
  const page = readFileSync(join(root, PAGE), "utf8");
  const anchors = [...page.matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) => title.toLowerCase().replaceAll(" ", "-"));
  for (const [, target = ""] of page.matchAll(/\]\(#([^)]*)\)/g)) expect(anchors).toContain(target);
  for (const [, target = ""] of page.matchAll(/\]\(([a-z]+\.md)/g))
    expect(existsSync(join(root, "docs", target))).toBe(true);
});
