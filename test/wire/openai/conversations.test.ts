import { describe, expect, test } from "vitest";
import type { Backend, BackendTurn } from "#backends/backend.ts";
import { shareGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { OPEN, openClient } from "./clients.ts";

/** Answers with its complete input. */
const shows: Backend = {
  kind: "shows",
  models: undefined,
  async *run(turn: BackendTurn) {
    yield { text: JSON.stringify({ history: await turn.history(), message: turn.message, earlier: turn.earlier }) };
    yield { usage: { input: 1, output: 1, cached: 1, reasoning: 1 } };
  },
  summarise: async (messages) => messages.map(({ role, text }) => `${role}: ${text}`).join("; "),
};
const gateway = await shareGateway({ config: { gateway: OPEN }, makeBackend: () => shows });
const { completions } = openClient(gateway.url).chat;

type Message = { role: "system" | "developer" | "user" | "assistant"; content: string };
async function ask(messages: Message[], user?: string) {
  const asked = { model: "main", messages: messages as never, ...(user !== undefined && { user }) };
  const answer = await completions.create(asked);
  const { session_id } = answer as unknown as { session_id: string };
  const reply = answer.choices[0]?.message.content ?? "";
  const { history, message, earlier } = JSON.parse(reply) as Record<"history" | "earlier", Told[]> & {
    message: object;
  };
  return { history, message, earlier, reply, session_id, usage: answer.usage };
}
type Told = { role: string; text: string; outside: boolean };
function told(role: string, text: string) {
  const message = { role, text, outside: false };
  return role === "system" ? { ...message, instructions: true } : message;
}

const CONVERSATION: Message[] = [
  { role: "system", content: "Be brief." },
  { role: "user", content: "What is a gateway?" },
  { role: "assistant", content: "A door." },
  { role: "developer", content: "Be briefer." },
  { role: "user", content: "And a door?" },
];
const BEFORE = [
  told("system", "Be brief."),
  told("user", "What is a gateway?"),
  told("assistant", "A door."),
  told("system", "Be briefer."),
];

describe("without a user", () => {
  test("the agent gets the whole conversation, message by message, in a new session", async () => {
    const [one, other] = [await ask(CONVERSATION), await ask(CONVERSATION)];
    expect(one.history).toEqual(BEFORE);
    expect(one.earlier).toEqual(BEFORE);
    expect(one.message).toEqual({ text: "And a door?", outside: false });
    expect(one.session_id).toMatch(/^chat:/);
    expect(other.session_id).not.toBe(one.session_id);
    const session = await gateway.gateway.store.getSession(one.session_id);
    expect(session).toMatchObject({ agent: "main", channel: "openai", userId: "tests" });
  });

  test("instructions behind the last message of the user are passed on, too", async () => {
    const { history, message } = await ask([
      { role: "user", content: "Hello" },
      { role: "system", content: "Answer in French." },
    ]);
    expect(history).toEqual([told("system", "Answer in French.")]);
    expect(message).toMatchObject({ text: "Hello" });
  });

  test("cached and reasoning tokens are in the usage", async () => {
    expect((await ask(CONVERSATION)).usage).toMatchObject({
      prompt_tokens_details: { cached_tokens: 1 },
      completion_tokens_details: { reasoning_tokens: 1 },
    });
  });
});

describe("with a user", () => {
  test("the gateway stores the conversation, which starts with the messages before its first one", async () => {
    const first = await ask(CONVERSATION, "ada");
    expect(first.session_id).toBe("agent:main:openai:ada");
    expect(first.history).toEqual(BEFORE);

    const next = await ask([{ role: "user", content: "Thanks" }], "ada");
    expect(next.session_id).toBe(first.session_id);
    const since = [told("user", "And a door?"), told("assistant", first.reply)];
    expect(next.history).toEqual([...BEFORE, ...since]);
    expect(next.earlier).toEqual([]);
  });

  test("repeated messages of a known conversation are not passed on twice", async () => {
    const first = await ask([{ role: "user", content: "One" }], "grace");
    const repeated: Message[] = [
      { role: "user", content: "One" },
      { role: "assistant", content: first.reply },
      { role: "user", content: "Two" },
    ];
    const { history } = await ask(repeated, "grace");
    expect(history).toEqual([told("user", "One"), told("assistant", first.reply)]);
  });

  test("changed instructions of a request replace the earlier ones, until they change again", async () => {
    const system = (content: string): Message => ({ role: "system", content });
    const hello: Message = { role: "user", content: "Hello" };
    const instructionsIn = (told: Told[]) => told.filter(({ role }) => role === "system").map(({ text }) => text);
    const inSession = async (...messages: Message[]) => await ask([...messages, hello], "emmy");
    expect(instructionsIn((await inSession(system("Be brief."))).history)).toEqual(["Be brief."]);
    const same = await inSession(system("Be brief."));
    expect([instructionsIn(same.history), same.earlier]).toEqual([["Be brief."], []]);
    const other = await inSession(system("Be kind."), { role: "developer", content: "Speak French." });
    expect(instructionsIn(other.history)).toEqual(["Be kind.", "Speak French."]);
    expect(other.history.filter(({ role }) => role === "user")).toHaveLength(2);
    expect(instructionsIn((await inSession()).history)).toEqual(["Be kind.", "Speak French."]);
    expect(instructionsIn((await inSession(system("Be brief."))).history)).toEqual(["Be brief."]);
  });

  test("a long beginning is cut to its instructions and its newest 64 Ki characters", async () => {
    const long = (letter: string): Message => ({ role: "assistant", content: letter.repeat(30_000) });
    const { history } = await ask(
      [{ role: "system", content: "Be brief." }, long("a"), long("b"), long("c"), { role: "user", content: "Hello" }],
      "long",
    );
    expect(history.map(({ text }) => text.slice(0, 9))).toEqual(["Be brief.", "bbbbbbbbb", "ccccccccc"]);
  });

  test("a summary replaces the beginning, too", async () => {
    await ask(CONVERSATION, "mary");
    await ask([{ role: "user", content: "Thanks" }], "mary");
    const compacted = { sessionId: "agent:main:openai:mary", keep: 1 };
    const { result } = await createRpc(gateway.url).call("session.compact", compacted);
    expect(result).toMatchObject({ compacted: true });
    const { history } = await ask([{ role: "user", content: "And now?" }], "mary");
    expect(history[0]).toMatchObject({ role: "system", outside: false });
    expect(history[0]?.text).toMatch(
      /^system: Be brief\.; user: What is a gateway\?; assistant: A door\.; system: Be briefer\./,
    );
    expect(history).toHaveLength(2);
  });
});
