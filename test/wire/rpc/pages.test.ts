import { expect, test } from "vitest";
import { startGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";

type Page = { messages: { text: string }[]; nextCursor: string | null };

const CHARACTERS = 200_000;

test("a page of long messages ends early, and the pages together have each message once", async () => {
  await using gateway = await startGateway();
  const rpc = createRpc(gateway.url);
  const call = async (method: string, params: object) => {
    const { json } = await rpc.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
    expect(json.error).toBeUndefined();
    return json.result;
  };
  for (const letter of "abcd") {
    const sent = { agentName: "main", sessionId: "long", message: letter.repeat(CHARACTERS), wait: true };
    await call("agent.sendMessage", sent);
  }
  const texts: string[] = [];
  let pages = 0;
  for (let cursor: string | null | undefined; cursor !== null; pages++) {
    const page = (await call("session.get", {
      sessionId: "long",
      limit: 500,
      includeCompacted: true,
      ...(cursor && { cursor }),
    })) as Page;
    texts.push(...page.messages.map(({ text }) => text));
    cursor = page.nextCursor;
  }
  expect(texts.map((text) => `${text[0]}${text.length}`)).toEqual(
    [..."ddccbbaa"].map((letter) => `${letter}${CHARACTERS}`),
  );
  expect(pages).toBe(3);
});
