import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "#core/clock.ts";
import { leastOf, stretchOf } from "#test/harness/loop.ts";
import { openHttpTransport } from "#tools/mcp/http.ts";
import { createToolServer, type ServerSettings } from "#tools/mcp/server.ts";
import { createToolSource } from "#tools/mcp/source.ts";
import { type Tool, ToolError } from "#tools/tool.ts";
import { answerOf } from "./stand-in-answers.mjs";

const { signal } = new AbortController();
const STAND_IN = resolve("test/tools/stand-in.mjs");
const program = (how: string): ServerSettings["reach"] => {
  return { type: "stdio", run: [process.execPath, STAND_IN, how], cwd: ".", env: { OWN: "1" } };
};

type More = { wanted?: string[]; callMs?: number; output?: number; clock?: Clock };

const open = (reach: ServerSettings["reach"], more: More = {}) => {
  const { wanted = ["files/*"], callMs = 5_000, output = 1_000, clock = systemClock } = more;
  const said: string[] = [];
  const server = createToolServer(
    { name: "files", version: "1.0.0", reach, callMs, outputCharacters: output },
    { clock, say: ({ line }) => void said.push(line) },
  );
  const source = createToolSource([server], wanted);
  const tools = async (hops = 0) => (await source.tools(signal, hops)).tools;
  return {
    source,
    said,
    names: async () => (await tools()).map(({ name }) => name),
    areOutside: async () => (await tools()).every(({ isOutside }) => isOutside),
    async call(name: string, args: unknown = {}, by = signal, hops = 0) {
      const tool = (await tools(hops)).find((one) => one.name === `files__${name}`) as Tool;
      return await tool.call(args, by);
    },
    [Symbol.asyncDispose]: () => source[Symbol.asyncDispose](),
  };
};

const OTHER = /^files__a_name_of_another_world_[0-9a-f]{6}$/;

describe("a server of tools over standard input and output", () => {
  it("offers its tools under names that models take, and is called", async () => {
    await using files = open(program("good"));
    const names = await files.names();
    expect(names.slice(0, 2)).toEqual(["files__say", "files__fail"]);
    expect(names.at(-1)).toMatch(OTHER);
    // A model is shown what they answer as data.
    expect(await files.areOutside()).toBe(true);
    expect(await files.call("say", { text: "hello 🙂" })).toBe("You said hello 🙂.");
  });

  it("offers what the agent names, and no more", async () => {
    await using files = open(program("good"), { wanted: ["files/say", "files/nothing", "other/fail"] });
    expect(await files.names()).toEqual(["files__say"]);
  });

  it("is asked for all pages of its tools", async () => {
    await using files = open(program("many"));
    expect(await files.names()).toHaveLength(60);
  });

  it("tells a model why a tool failed", async () => {
    await using files = open(program("good"));
    await expect(files.call("fail")).rejects.toThrow("There is no such customer.");
  });

  it("shows a model what is text, and says what else there was", async () => {
    await using files = open(program("good"), { output: 20 });
    expect(await files.call("structured")).toBe('{"total":3}');
    expect(await files.call("picture")).toMatch(/^\[image, image\/png, n\n\[cut here: \d+ more characters\]$/);
  });

  it("gets nothing of the gateway's environment but the bare necessities", async () => {
    process.env.GATEWAY_TEST_SECRET = "secret";
    await using files = open(program("good"));
    expect((await files.call("env")).split(" ")).not.toContain("GATEWAY_TEST_SECRET");
    expect((await files.call("env")).split(" ")).toContain("OWN");
    delete process.env.GATEWAY_TEST_SECRET;
  });

  it("is taken although it prints what is no message", async () => {
    await using files = open(program("chatty"));
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
  });

  it("F28: is told through how many hops came what calls it, and not called past the last", async () => {
    await using files = open(program("good"));
    expect(JSON.parse(await files.call("meta", {}, signal, 2))).toMatchObject({ "agent-gateway/hops": 3 });
    await expect(files.call("meta", {}, signal, 3)).rejects.toThrow(
      "The tool was not called: it came through 3 announcements or agents, as in a loop.",
    );
  });

  it("F06: is left out when it does not answer at its start, and other turns have not waited", async () => {
    // What is waited for 10 s is waited for 100 ms.
    const clock = { ...systemClock, after: (ms: number, fire: () => void) => systemClock.after(ms / 100, fire) };
    await using files = open(program("silent"), { clock });
    const { missing } = await files.source.tools(signal, 0);
    expect(missing).toEqual([{ server: "files", reason: "it did not answer in time" }]);
  });

  it("F08: is not believed that answers what nobody asked", async () => {
    await using files = open(program("good"), { callMs: 200 });
    await expect(files.call("other")).rejects.toThrow("it did not answer in time");
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
  });

  it("F08: is asked no more for all that it tells", async () => {
    await using files = open(program("good"));
    await files.names();
    expect(
      await leastOf(3, 50, () => stretchOf(async () => expect(await files.call("flood")).toBe("enough"))),
    ).toBeLessThan(50);
    await expect.poll(() => files.call("lists").then(Number)).toBeGreaterThan(1);
    expect(Number(await files.call("lists"))).toBeLessThan(20);
  });

  it("F08: offers no tool that would fill every request, and says which are left out", async () => {
    await using files = open(program("huge"));
    expect(await files.names()).toEqual(["files__say"]);
    const { missing } = await files.source.tools(signal, 0);
    expect(missing).toEqual([{ server: "files", reason: "too large for a model: large, wordy" }]);
    await using some = open(program("huge"), { wanted: ["files/say", "files/wordy"] });
    expect((await some.source.tools(signal, 0)).missing[0]?.reason).toBe("too large for a model: wordy");
  });

  it("fails a call that takes too long, and goes on", async () => {
    await using files = open(program("good"), { callMs: 100 });
    await expect(files.call("hang")).rejects.toThrow("it did not answer in time");
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
  });

  it("leaves a call at once whose turn was stopped", async () => {
    await using files = open(program("good"));
    await files.names();
    const controller = new AbortController();
    const call = files.call("hang", {}, controller.signal);
    setTimeout(() => controller.abort(new Error("stopped")), 20);
    await expect(call).rejects.toThrow("stopped");
  });

  it.each(["crash", "endless"])("is started again after %s", async (how) => {
    await using files = open(program("good"));
    await expect(files.call(how)).rejects.toThrow("it has ended");
    expect(await files.call("say", { text: "again" })).toBe("You said again.");
  });

  it.each(["exits", "nothing-such"])("is left out with the reason where it does not start: %s", async (how) => {
    const run = how === "exits" ? program(how) : { ...program(how), run: ["/nowhere/nothing-such"] };
    await using files = open(run as ServerSettings["reach"]);
    const began = performance.now();
    const { tools, missing } = await files.source.tools(signal, 0);
    expect(tools).toEqual([]);
    expect(missing).toEqual([{ server: "files", reason: expect.stringMatching(/has ended|cannot be started/) }]);
    expect((await files.source.tools(signal, 0)).missing).toEqual(missing);
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  it("lets a turn go on that is stopped while it starts", async () => {
    await using files = open(program("silent"));
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error("stopped")), 50);
    await expect(files.source.tools(controller.signal, 0)).rejects.toThrow("stopped");
  });
});

type Played = {
  how: "json" | "stream" | "redirect" | "gzip" | "endless" | "refuse" | "html" | "half" | "latin" | "line" | "stuck";
};

/** A server of tools that is reached by streamable HTTP. */
const serve = async ({ how }: Played) => {
  const seen: IncomingMessage["headers"][] = [];
  const left: string[] = [];
  let sessions = 0;
  const gone = new Set<string>();
  const onRequest = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    seen.push(req.headers);
    if (req.method !== "POST") return void res.writeHead(405).end();
    const message = JSON.parse(await text(req)) as { id?: unknown; method: string };
    if (how === "refuse") return void res.writeHead(401).end("who are you?");
    if (how === "redirect") return void res.writeHead(307, { location: "http://127.0.0.1:9/" }).end();
    if (gone.has(String(req.headers["mcp-session-id"]))) return void res.writeHead(404).end();
    const answer = answerOf(message, "good");
    if (!answer) return void res.writeHead(202).end();
    const session = message.method === "initialize" ? { "mcp-session-id": `s${++sessions}` } : {};
    if (how === "gzip") return void res.writeHead(200, { ...session, "content-encoding": "gzip" }).end("x");
    if (how === "endless" && message.method === "tools/list") {
      res.writeHead(200, { ...session, "content-type": "application/json" });
      const more = () => {
        if (!res.destroyed) res.write("x".repeat(1024 ** 2), () => setImmediate(more));
      };
      return more();
    }
    const head = { ...session, "content-type": "application/json" };
    const isCall = message.method === "tools/call";
    const words = JSON.stringify(answer);
    if (how === "html") return void res.writeHead(200, { "content-type": "text/html" }).end("<html>secret</html>");
    if (how === "half") return void res.writeHead(200, head).end(words.slice(0, -9));
    if (how === "latin" && isCall) {
      return void res.writeHead(200, head).end(Buffer.from(words.replace("You", "Y\u00fc"), "latin1"));
    }
    if (how === "line" && isCall) {
      res.writeHead(200, { ...session, "content-type": "text/event-stream" });
      const more = () => {
        if (!res.destroyed) res.write("x".repeat(1024 ** 2), () => setImmediate(more));
      };
      return void res.write("data: ", more);
    }
    if (how === "stuck" && isCall) {
      res.once("close", () => left.push(message.method));
      return void res.writeHead(200, { ...session, "content-type": "text/event-stream" }).flushHeaders();
    }
    const body = words;
    const isStream = how === "stream";
    res.writeHead(200, { ...session, "content-type": isStream ? "text/event-stream" : "application/json" });
    res.end(isStream ? `event: message\ndata: ${body}\n\n` : body);
  };
  const server: Server = createServer((req, res) => void onRequest(req, res));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    reach: { type: "http", url: `http://127.0.0.1:${port}/mcp`, headers: { authorization: "Bearer t" } } as const,
    seen,
    /** What was asked whose connection the caller closed. */
    left,
    expire: () => gone.add(`s${sessions}`),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};

describe("a server of tools over HTTP", () => {
  it.each(["json", "stream"] as const)("is called, and answers as %s", async (how) => {
    await using server = await serve({ how });
    await using files = open(server.reach);
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
    expect(server.seen.every(({ authorization }) => authorization === "Bearer t")).toBe(true);
  });

  it.each([
    ["redirect", "it answered 307, and redirects are not followed"],
    ["gzip", "it answered with an encoding that nobody asked for"],
    ["endless", "its answer is longer than 16 MiB"],
    ["refuse", "who are you?"],
    ["html", "Unexpected content type: text/html"],
    ["half", "JSON"],
  ] as const)("that %ss is left out with the reason", async (how, reason) => {
    await using server = await serve({ how });
    await using files = open(server.reach);
    const { missing } = await files.source.tools(signal, 0);
    expect(missing[0]?.reason).toContain(reason);
  });

  it("F28: is told of hops in a header, too", async () => {
    await using server = await serve({ how: "json" });
    await using files = open(server.reach);
    await files.call("say", { text: "a" }, signal, 1);
    expect(server.seen.flatMap((headers) => headers["x-gateway-hops"] ?? [])).toEqual(["2"]);
  });

  it("F08: fails a call whose answer has no end, and one that it stops in the middle of is closed", async () => {
    await using endless = await serve({ how: "line" });
    await using one = open(endless.reach, { callMs: 500 });
    await expect(one.call("say", { text: "a" })).rejects.toThrow(ToolError);
    await using stuck = await serve({ how: "stuck" });
    await using two = open(stuck.reach, { callMs: 50 });
    await expect(two.call("say", { text: "a" })).rejects.toThrow("it did not answer in time");
    // What the client leaves open is closed all the same, when its time is over.
    const { transport, close } = openHttpTransport({ ...stuck.reach, longestMs: 100 });
    await transport.start();
    await transport.send({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "say", arguments: {} } });
    await expect.poll(() => stuck.left).toEqual(["tools/call"]);
    await close();
  });

  it("F08: shows no model what is no UTF-8 as if it were", async () => {
    await using server = await serve({ how: "latin" });
    await using files = open(server.reach);
    expect(await files.call("say", { text: "a" })).toBe("Y\ufffd said a.");
  });

  it("is joined anew when its session is over", async () => {
    await using server = await serve({ how: "json" });
    await using files = open(server.reach);
    await files.names();
    server.expire();
    await expect(files.call("say", { text: "a" })).rejects.toThrow();
    expect(await files.call("say", { text: "b" })).toBe("You said b.");
  });

  it("that is not there is left out", async () => {
    await using files = open({ type: "http", url: "http://127.0.0.1:9/mcp", headers: {} });
    const { missing } = await files.source.tools(signal, 0);
    expect(missing).toEqual([{ server: "files", reason: expect.stringContaining("fetch failed") }]);
  });
});
