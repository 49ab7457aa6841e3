import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "#kit/clock.ts";
import type { ServerSettings } from "#tools/mcp/connection.ts";
import { open, signal } from "./open-tools.ts";
import { MODERN } from "./stand-in-answers.mjs";

const STAND_IN = resolve("test/tools/stand-in.mjs");
const OLD = "2025-11-25";
function programOf(how: string, revision: string): ServerSettings["reach"] {
  return { type: "stdio", run: [process.execPath, STAND_IN, how, revision], cwd: ".", env: { OWN: "1" } };
}

const OTHER = /^files__a_name_of_another_world_[0-9a-f]{6}$/;

describe.each([OLD, MODERN])("an MCP server of %s over standard input and output", (revision) => {
  const program = (how: string) => programOf(how, revision);

  it("offers its tools under names that models accept, and is called", async () => {
    await using files = open(program("good"));
    const names = await files.names();
    expect(names.slice(0, 2)).toEqual(["files__say", "files__fail"]);
    expect(names.at(-1)).toMatch(OTHER);
    // A model gets their answers as data.
    expect(await files.areOutside()).toBe(true);
    expect(await files.call("say", { text: "hello 🙂" })).toBe("You said hello 🙂.");
  });

  it("offers only the tools that the agent names", async () => {
    await using files = open(program("good"), { wanted: ["files/say", "files/nothing", "other/fail"] });
    expect(await files.names()).toEqual(["files__say"]);
    const { missing } = await files.source.tools(signal, 0);
    expect(missing).toEqual([{ server: "files", reason: "none of its tools: nothing" }]);
  });

  it("returns all pages of its tools", async () => {
    await using files = open(program("many"));
    expect(await files.names()).toHaveLength(60);
  });

  it("returns its tools once if its pages have no end", async () => {
    await using files = open(program("loop"));
    expect(await files.names()).toEqual(["files__say", "files__lists"]);
    expect(Number(await files.call("lists"))).toBe(3);
  });

  it("offers no more than 500 tools", async () => {
    await using files = open(program("thousands"));
    expect(await files.names()).toHaveLength(500);
  });

  it("reports to a model why a tool failed", async () => {
    await using files = open(program("good"));
    await expect(files.call("fail")).rejects.toThrow("There is no such customer.");
  });

  it("shows a model the text of a result, and names the other content", async () => {
    await using files = open(program("good"), { output: 20 });
    expect(await files.call("structured")).toBe('{"total":3}');
    expect(await files.call("picture")).toMatch(/^\[image, image\/png, n\n\[cut here: \d+ more characters\]$/);
  });

  it("F35: MUST have only the first 1 000 parts of a result read", async () => {
    await using files = open(program("good"), { output: 100_000 });
    const shown = await files.call("parts", { text: "1002 text" });
    expect(shown.split("\n").slice(998)).toEqual(["part 998", "part 999", "[cut here: 2 more parts]"]);
    const failure = await files.call("parts", { text: "33000 nothing" }).catch((error: Error) => error.message);
    expect(failure).toContain("The call failed: Invalid result for tools/call");
    expect(failure.length).toBeLessThan(250);
  });

  it("gets only the necessary variables of the gateway's environment", async () => {
    process.env.GATEWAY_TEST_SECRET = "secret";
    await using files = open(program("good"));
    expect((await files.call("env")).split(" ")).not.toContain("GATEWAY_TEST_SECRET");
    expect((await files.call("env")).split(" ")).toContain("OWN");
    delete process.env.GATEWAY_TEST_SECRET;
  });

  it("is accepted although it prints lines that are not messages", async () => {
    await using files = open(program("chatty"));
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
  });

  it("F28: gets the number of hops of its caller, and no call above the maximum", async () => {
    await using files = open(program("good"));
    expect(JSON.parse(await files.call("meta", {}, signal, 2))).toMatchObject({ "agent-gateway/hops": 3 });
    await expect(files.call("meta", {}, signal, 3)).rejects.toThrow(
      "The tool was not called: it passed through 3 or more announcements or agents, as in a loop.",
    );
  });

  it("F06: is omitted if it does not answer at its start, and other turns do not wait", async () => {
    // A wait of 10 s is 100 ms here.
    const clock = { ...systemClock, after: (ms: number, fire: () => void) => systemClock.after(ms / 100, fire) };
    await using files = open(program("silent"), { clock });
    const { missing } = await files.source.tools(signal, 0);
    expect(missing).toEqual([{ server: "files", reason: "it did not answer in time" }]);
  });

  it("F08: has its unexpected answers ignored", async () => {
    await using files = open(program("good"), { callMs: 200 });
    await expect(files.call("other")).rejects.toThrow("it did not answer in time");
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
  });

  it("F08: is not called again for each of its notifications", async () => {
    await using files = open(program("good"));
    await files.names();
    expect(await files.call("flood")).toBe("enough");
    await expect.poll(() => files.call("lists").then(Number)).toBeGreaterThan(1);
    expect(Number(await files.call("lists"))).toBeLessThan(20);
  });

  it.each(["ping", "roots/list"])(
    "F35: MUST be ended if it requests too much, and is started again: %s",
    async (what) => {
      await using files = open(program("good"));
      const reason = "it sent too many requests of its own, and was ended";
      await expect(files.call("ask", { text: `${what} 20000` })).rejects.toThrow(`The call failed: ${reason}.`);
      expect(files.failures).toEqual([reason]);
      expect(await files.call("say", { text: "a" })).toBe("You said a.");
    },
  );

  it("F35: MUST be ended if it notifies too much, and is started again", async () => {
    await using files = open(program("good"));
    await expect(files.call("tell")).rejects.toThrow("The call failed: it sent too many messages, and was ended.");
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
  });

  it("F35: MUST be ended if a message would block others while it is parsed, and is started again", async () => {
    const reason = "it sent a message that holds more than 100000 values, and was ended";
    await using files = open(program("good"));
    await expect(files.call("values")).rejects.toThrow(`The call failed: ${reason}.`);
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
    await using crowd = open(program("crowd"));
    expect((await crowd.source.tools(signal, 0)).missing).toEqual([{ server: "files", reason }]);
  });

  it("F35: MUST be omitted if it requests too much at its start", async () => {
    await using files = open(program("floods"));
    const reason = "it sent too many requests of its own, and was ended";
    expect((await files.source.tools(signal, 0)).missing).toEqual([{ server: "files", reason }]);
    expect(files.failures).toEqual([reason]);
  });

  it("F08: offers no tool that would fill every request, and reports the omitted ones", async () => {
    await using files = open(program("huge"));
    expect(await files.names()).toEqual(["files__say"]);
    const { missing } = await files.source.tools(signal, 0);
    expect(missing).toEqual([{ server: "files", reason: "too large for a model: large, wordy" }]);
    await using some = open(program("huge"), { wanted: ["files/say", "files/wordy"] });
    expect((await some.source.tools(signal, 0)).missing[0]?.reason).toBe("too large for a model: wordy");
  });

  it("fails a call that takes too long, and continues", async () => {
    await using files = open(program("good"), { callMs: 100 });
    await expect(files.call("hang")).rejects.toThrow("it did not answer in time");
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
  });

  it("is abandoned at once by a call whose turn was stopped", async () => {
    await using files = open(program("good"));
    await files.names();
    const controller = new AbortController();
    const call = files.call("hang", {}, controller.signal);
    setTimeout(() => controller.abort(new Error("stopped")), 20);
    await expect(call).rejects.toThrow("stopped");
  });

  it.each([
    ["crash", "it has ended"],
    ["endless", "it sent a message of more than 16 MiB, and was ended"],
  ])("is started again after %s", async (how, reason) => {
    await using files = open(program("good"));
    await expect(files.call(how)).rejects.toThrow(reason);
    expect(await files.call("say", { text: "again" })).toBe("You said again.");
  });

  it("is started again at once after its output has ended, however long its child processes take to end", async () => {
    let isHeld = true;
    const clock = { ...systemClock, monotonic: () => (isHeld ? 0 : systemClock.monotonic()) };
    await using files = open(program("good"), { clock });
    await expect(files.call("lingers")).rejects.toThrow("it has ended");
    expect(await files.call("say", { text: "again" })).toBe("You said again.");
    isHeld = false;
  });

  it.each(["-32000", "-32001"])("has its error shown if the code is one of the client's own: %s", async (code) => {
    await using files = open(program("good"));
    await expect(files.call("refuse", { text: code })).rejects.toThrow(
      `The call failed: MCP error ${code}: The quota is used up.`,
    );
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
  });

  /** A server that is asked for its tools in real time, and whose calls follow a faster clock. */
  const openHurried = async () => {
    const pace = { by: 1 };
    const after = (ms: number, fire: () => void) => systemClock.after(ms / pace.by, fire);
    const files = open(program("good"), { callMs: 250, clock: { ...systemClock, after } });
    await files.names();
    pace.by = 50;
    return { files, pace };
  };

  it("F06: is ended and started again if it hangs, with a log line", async () => {
    const { files: opened, pace } = await openHurried();
    await using files = opened;
    await expect(files.call("stuck")).rejects.toThrow("it did not answer in time");
    await expect.poll(() => files.failures).toEqual(["it did not respond for 10 s after a call, and was ended"]);
    pace.by = 1;
    await expect.poll(() => files.call("say", { text: "a" }).catch(String)).toBe("You said a.");
    expect(files.failures).toHaveLength(1);
  });

  it("is not started again after a call that takes too long if it answers pings", async () => {
    await using files = (await openHurried()).files;
    const lists = Number(await files.call("lists"));
    await expect(files.call("hang")).rejects.toThrow("it did not answer in time");
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(files.failures).toEqual([]);
    expect(Number(await files.call("lists"))).toBe(lists);
  });

  it.each(["exits", "nothing-such"])("is omitted with the reason if it does not start: %s", async (how) => {
    const run = how === "exits" ? program(how) : { ...program(how), run: ["/nowhere/nothing-such"] };
    await using files = open(run as ServerSettings["reach"]);
    const { tools, missing } = await files.source.tools(signal, 0);
    expect(tools).toEqual([]);
    expect(missing).toEqual([{ server: "files", reason: expect.stringMatching(/has ended|cannot be started/) }]);
    expect((await files.source.tools(signal, 0)).missing).toEqual(missing);
  });

  it("does not delay a turn that is stopped while it starts", async () => {
    await using files = open(program("silent"));
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error("stopped")), 50);
    await expect(files.source.tools(controller.signal, 0)).rejects.toThrow("stopped");
  });
});

describe("requests of an MCP server", () => {
  it.each([
    ["ping", "answered"],
    ["roots/list", "-32601"],
    ["sampling/createMessage", "-32601"],
    ["elicitation/create", "-32601"],
  ])("F35: MUST get answers to a few requests of its own: %s is %s", async (what, answer) => {
    await using files = open(programOf("good", OLD));
    expect(await files.call("ask", { text: `${what} 5` })).toBe(Array.from({ length: 5 }, () => answer).join());
  });

  it("F35: MUST get no answer in the revision that has no such requests", async () => {
    await using files = open(programOf("good", MODERN), { callMs: 300 });
    await expect(files.call("ask", { text: "roots/list 5" })).rejects.toThrow("it did not answer in time");
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
    expect(files.failures).toEqual([]);
  });
});

it("MUST start a program that exits at any request before `initialize`, at the first attempt", async () => {
  await using files = open(programOf("shy", OLD));
  expect(await files.call("say", { text: "a" })).toBe("You said a.");
  expect(files.failures).toEqual([]);
});

it("MUST report why a server and the gateway have no revision in common", async () => {
  await using files = open(programOf("future", MODERN));
  const { missing } = await files.source.tools(signal, 0);
  expect(missing).toEqual([{ server: "files", reason: "it supports none of the gateway's MCP revisions" }]);
  await using other = open(programOf("ancient", OLD));
  const [{ reason } = { reason: "" }] = (await other.source.tools(signal, 0)).missing;
  expect(reason).toMatch(/^Server's protocol version is not supported: 1999/);
  expect(reason.length).toBeLessThan(250);
});

const NO_INPUT = "it requested input, which the gateway does not support";

describe("results of other types", () => {
  const question = { method: "elicitation/create", params: { message: "Who?", requestedSchema: { type: "object" } } };
  const task = { taskId: "t", status: "working", createdAt: "", lastUpdatedAt: "", ttlMs: 0 };
  const cases: [title: string, result: object, reason: string][] = [
    ["questions", { resultType: "input_required", inputRequests: { who: question } }, NO_INPUT],
    ["a request to ask again", { resultType: "input_required", requestState: "s" }, NO_INPUT],
    ["no question", { resultType: "input_required" }, "Invalid result for tools/call: input_required carries neither"],
    ["a task", { resultType: "task", ...task }, "it started a task, and the gateway accepts only results"],
    ["a long type", { resultType: "x".repeat(100_000) }, 'its result has the unknown type "xxx'],
    ["a number", { resultType: 1 }, "Invalid result for tools/call: non-string resultType"],
    ["null", { resultType: null }, "Invalid result for tools/call: non-string resultType"],
    ["no content", { resultType: "complete" }, "Invalid result for tools/call"],
  ];
  it.each(cases)("MUST be refused with the reason: %s", async (_, result, reason) => {
    await using files = open(programOf("good", MODERN));
    const failure = await files.call("result", { text: JSON.stringify(result) }).catch((error: Error) => error);
    expect(failure).toMatchObject({
      name: "ToolError",
      message: expect.stringContaining(`The call failed: ${reason}`),
    });
    expect((failure as Error).message.length).toBeLessThan(250);
    expect(await files.call("say", { text: "a" })).toBe("You said a.");
  });
});
