import { describe, expect, it } from "vitest";
import { countTokens, createEchoBackend, type EchoSettings } from "#backends/echo.ts";
import { createRandom } from "#test/harness/random.ts";
import { failureOf } from "./stand-ins/programs.ts";
import { backendSuite, collect, textOf, turnOf } from "./suite.ts";

backendSuite({
  name: "echo",
  open: async () => createEchoBackend({ delayMs: 1, chunks: 7 }),
  openSlow: async () => createEchoBackend({ delayMs: 150, chunks: 10 }),
  openPaced: async () => createEchoBackend({ delayMs: 10, chunks: 4 }),
  openFailing: async () => createEchoBackend({ fail: "out of order" }),
  deterministic: true,
});

async function run(text: string, settings: EchoSettings = {}, attempt = 1) {
  return await collect(
    createEchoBackend(settings).run(
      turnOf({ message: { text, outside: false, context: undefined }, attempt }),
      new AbortController().signal,
    ),
  );
}
async function piecesOf(text: string, chunks: number) {
  return (await run(text, { chunks })).flatMap((chunk) => ("text" in chunk ? [chunk.text] : []));
}
function failureAt(attempt: number, settings: EchoSettings) {
  return failureOf(run("hello", settings, attempt));
}

describe("the reply of the echo agent", () => {
  it("is the complete message, with a token for each four characters", async () => {
    const text = "Good morning \u0000\r\n🙂 \ud800";
    expect(await run(text)).toEqual([{ text, usage: { input: 5, output: 5 } }]);
    expect([0, 1, 4, 5, 8].map((length) => countTokens("x".repeat(length)))).toEqual([0, 1, 1, 2, 2]);
  });

  it("is only the text, whether it is from outside or not", async () => {
    const turn = turnOf({
      message: { text: "from outside", outside: true, context: undefined },
      instructions: "be kind",
    });
    expect(textOf(await collect(createEchoBackend().run(turn, new AbortController().signal)))).toBe("from outside");
  });

  it("arrives in the configured number of pieces, of similar length", async () => {
    expect(await piecesOf("abcdefghij", 3)).toEqual(["abc", "defg", "hij"]);
    expect(await piecesOf("abcdefghij", 10)).toEqual([..."abcdefghij"]);
    expect(await piecesOf("ab", 5)).toEqual(["a", "b"]);
    expect(await piecesOf("", 5)).toEqual([]);
  });

  it("is not cut inside a surrogate pair, and loses no character", async () => {
    for (let seed = 1; seed <= 300; seed++) {
      const random = createRandom(seed);
      const text = Array.from({ length: random.below(30) }, () => random.pick(["a", "ü", "🙂", "👩‍🚀"])).join("");
      const pieces = await piecesOf(text, 1 + random.below(40));
      expect(pieces.join("")).toBe(text);
      for (const piece of pieces) expect(piece, `seed ${seed}`).toBe(Buffer.from(piece).toString());
    }
  });

  it("waits before each piece", async () => {
    const began = performance.now();
    await run("abc", { chunks: 3, delayMs: 20 });
    // A timer may fire a millisecond early.
    expect(performance.now() - began).toBeGreaterThanOrEqual(55);
  });

  it("does not need the history", async () => {
    const history = () => Promise.reject(new Error("asked"));
    await expect(
      collect(createEchoBackend().run(turnOf({ history }), new AbortController().signal)),
    ).resolves.toHaveLength(1);
  });
});

describe("the echo agent with configured failures", () => {
  it("fails every attempt with the given error, without a retry", async () => {
    for (const attempt of [1, 2, 9]) {
      expect(await failureAt(attempt, { fail: "out of order" })).toMatchObject({
        message: "out of order",
        retryable: false,
      });
    }
  });

  it("fails the first attempts of each turn with a retry, and then answers", async () => {
    for (const attempt of [1, 2]) {
      expect(await failureAt(attempt, { failTimes: 2 })).toMatchObject({ retryable: true });
      expect(await failureAt(attempt, { failTimes: 2, fail: "busy" })).toMatchObject({ message: "busy" });
    }
    expect(textOf(await run("hello", { failTimes: 2 }, 3))).toBe("hello");
    expect(textOf(await run("hello", { failTimes: 2, fail: "busy" }, 3))).toBe("hello");
  });
});

describe("the summary of the echo agent", () => {
  const summarise = (...texts: string[]) =>
    createEchoBackend().summarise(
      texts.map((text, n) => ({ role: n % 2 ? "assistant" : "user", text, outside: false })),
      new AbortController().signal,
    );

  it("is the first 80 characters of each message, with its role", async () => {
    expect(await summarise("short", "x".repeat(81))).toBe(`user: short\nassistant: ${"x".repeat(80)}`);
    expect(await summarise()).toBe("");
    const used: unknown[] = [];
    const message = { role: "user", text: "12345", outside: false } as const;
    await createEchoBackend().summarise([message], new AbortController().signal, (usage) => used.push(usage));
    expect(used).toEqual([{ input: 2, output: 3 }]);
  });

  it("is not cut inside a character", async () => {
    expect(await summarise(`${"x".repeat(79)}🙂`)).toBe(`user: ${"x".repeat(79)}`);
    expect(await summarise(`${"x".repeat(78)}🙂y`)).toBe(`user: ${"x".repeat(78)}🙂`);
  });
});
