import { describe, expect, test } from "vitest";
import { watchFromApart } from "#test/harness/client-apart.ts";
import { SECRETS, shareGateway } from "#test/harness/gateway.ts";
import { leastOf } from "#test/harness/loop.ts";
import { RPC } from "#test/harness/rpc.ts";
import { senders } from "#test/harness/senders.ts";
import { skillsFolder, skillText } from "#test/harness/skills.ts";
import { LARGE_HOOK_BODIES, LARGE_REST_BODIES, LARGE_RPC_BODIES } from "#test/wire/call/large-bodies.ts";

const MOST_MS = 20;
const secret = senders.github.makeSecret("first");
const mappings = {
  signed: { match: { "body.a.b.0.c": "x" }, message: "{body.it}", verify: { type: "github", secret } },
  any: { match: {}, message: "got {body.it} {body.toString.name} {headers.valueOf}" },
} as const;
const skills = { dirs: [skillsFolder({ tell: skillText("tell", "Tells what it was given.") })] };
const gateway = await shareGateway({
  config: { skills, webhooks: { mappings }, gateway: { openai: { enabled: true }, defaultAgent: "main" } },
});
const watch = watchFromApart(gateway.url);

function longestStretch(path: string, token: string, body: string | Buffer, more: Record<string, string> = {}) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", ...more };
  return leastOf(10, MOST_MS, async () => {
    const { longest, reply } = await watch({ method: "POST", path }, headers, Buffer.from(body));
    expect(reply.status).toBeLessThan(500);
    return longest;
  });
}

describe(`F13: no body blocks the event loop for more than ${MOST_MS} ms`, () => {
  test.each(LARGE_REST_BODIES)("REST: %s", async (_, body, path) => {
    expect(await longestStretch(path, SECRETS.key, body)).toBeLessThan(MOST_MS);
  });

  test.each(LARGE_RPC_BODIES)("RPC: %s", async (_, body) => {
    expect(await longestStretch(RPC.path, SECRETS.rpcToken, body)).toBeLessThan(MOST_MS);
  });

  test.each(LARGE_HOOK_BODIES)("webhooks: %s", async (_, path, body) => {
    const signed = await senders.github.sign(secret, String(body));
    expect(await longestStretch(path, SECRETS.webhookToken, body, signed)).toBeLessThan(MOST_MS);
  });
});
