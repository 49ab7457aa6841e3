import fs, { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { GatewayError } from "#kit/errors.ts";
import { createLogger, type LoggerOptions } from "#observe/logger.ts";
import { localTime } from "#observe/pretty.ts";

const AT = Date.parse("2026-11-21T08:54:31.123Z");

function startLogger(options: Partial<LoggerOptions> = {}) {
  const writes: string[] = [];
  const logger = createLogger({ level: "info", now: () => AT, write: (text) => writes.push(text), ...options });
  const text = async () => {
    await logger.flush();
    return writes.join("");
  };
  const record = async () => JSON.parse(await text()) as Record<string, unknown>;
  return { logger, writes, text, record };
}

it("writes one line of JSON per event, the time, the level and the name first", async () => {
  const { logger, text } = startLogger();
  logger.log("info", "request", { status: 200, ms: 1.5, caller: "ci", traceId: undefined, whole: true, none: null });
  expect(await text()).toBe(
    '{"time":"2026-11-21T08:54:31.123Z","level":"info","event":"request","status":200,"ms":1.5,"caller":"ci","whole":true,"none":null}\n',
  );
});

it("writes nothing below its level", async () => {
  const { logger, text } = startLogger({ level: "warn" });
  logger.log("debug", "a");
  logger.log("info", "b");
  logger.log("error", "c");
  expect((await text()).match(/"event":"."/g)).toEqual(['"event":"c"']);
});

it("leaves its own members unchanged if a field has the same name", async () => {
  const { logger, record } = startLogger();
  logger.log("info", "real", { event: "forged", level: "error", time: 0 });
  expect(await record()).toMatchObject({ event: "real", level: "info", _event: "forged", _level: "error", _time: 0 });
});

const circular: Record<string, unknown> = { name: "loop" };
circular.self = circular;
function deep(levels: number): unknown {
  return levels === 0 ? "bottom" : { down: deep(levels - 1) };
}
const thrower = {
  get bad(): string {
    throw new Error("no");
  },
  good: 1,
};
const closedProxy = new Proxy(
  {},
  {
    ownKeys: () => {
      throw new Error("no");
    },
    getPrototypeOf: () => {
      throw new Error("no");
    },
  },
);

it.each([
  ["a lone surrogate", "a\ud800b", "a\ud800b"],
  ["a BigInt", 12345678901234567890n, "12345678901234567890"],
  ["a circular object", circular, { name: "loop", self: "[circular]" }],
  ["a getter that throws", thrower, { bad: "[threw]", good: 1 }],
  ["a proxy that throws", closedProxy, "[unreadable]"],
  ["a symbol", Symbol("x"), "[symbol]"],
  ["a function", () => {}, "[function]"],
  ["not a number", Number.NaN, "NaN"],
  ["an infinity", Number.NEGATIVE_INFINITY, "-Infinity"],
  ["an invalid date", new Date(Number.NaN), "[invalid date]"],
  ["a date", new Date(AT), "2026-11-21T08:54:31.123Z"],
  ["bytes", Buffer.alloc(1 << 20), "[1048576 bytes]"],
  [
    "a toJSON that throws",
    {
      toJSON: () => {
        throw new Error("no");
      },
      a: 1,
    },
    { toJSON: "[function]", a: 1 },
  ],
  ["control characters", "a\u0000\n\u001b[31m", "a\u0000\n\u001b[31m"],
])("logs %s without throwing", async (_, value, expected) => {
  const { logger, record } = startLogger();
  logger.log("info", "hostile", { value });
  expect((await record()).value).toEqual(expected);
});

it("survives fields whose names cannot be read", async () => {
  const { logger, record } = startLogger();
  logger.log("info", "hostile", closedProxy);
  expect(await record()).toMatchObject({ event: "hostile", unreadable: true });
});

it("writes every line as valid UTF-8", async () => {
  const { logger, text } = startLogger();
  logger.log("info", "a\udc00", { "\ud800": ["\udfff"] });
  const line = await text();
  expect(Buffer.from(line).toString()).toBe(line);
});

it("limits the length of a line, whatever is logged", async () => {
  const { logger, text } = startLogger({ maxStringChars: 1000, maxLineChars: 5000 });
  const wide = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`key${n}`, "x".repeat(500)]));
  logger.log("info", "huge", { long: "y".repeat(1 << 20), wide, list: new Array(5000).fill("z"), deep: deep(50) });
  const line = await text();
  expect(line.length).toBeLessThan(8000);
  expect(JSON.parse(line).long).toBe(`${"y".repeat(1000)}…[+${(1 << 20) - 1000}]`);
});

it("logs an error with its stack, its cause and its fields", async () => {
  const { logger, record } = startLogger();
  const error = Object.assign(new Error("outer", { cause: new TypeError("inner") }), { code: "EX", detail: "more" });
  logger.log("error", "unexpected.error", { error });
  const logged = (await record()).error as Record<string, unknown>;
  expect(logged).toMatchObject({ name: "Error", message: "outer", code: "EX", detail: "more" });
  expect(logged.stack).toContain("logger.test.ts");
  expect(logged.cause).toMatchObject({ name: "TypeError", message: "inner" });
});

it("omits the stack of a plain error, and has that of its cause", async () => {
  const { logger, record } = startLogger();
  const error = Object.assign(new Error("the backend answered 401", { cause: new TypeError("inner") }), {
    isPlain: true,
  });
  logger.log("warn", "backend.failed", { error });
  const logged = (await record()).error as Record<string, unknown>;
  expect(logged.stack).toBeUndefined();
  expect(logged).toMatchObject({ message: "the backend answered 401", cause: { message: "inner" } });
  expect((logged.cause as { stack: string }).stack).toContain("logger.test.ts");
});

it("writes short lines for people, in which the caller's text controls nothing", async () => {
  const { logger, text } = startLogger({ format: "pretty" });
  logger.log("info", "request", {
    operation: "chat.send",
    status: 200,
    text: "two words",
    evil: "\u001b[2J\nforged\u009b",
  });
  expect(await text()).toBe(
    `${localTime(AT)} info  request operation=chat.send status=200 text="two words" evil="\\u001b[2J\\nforged\\u009b"\n`,
  );
});

it.each([
  [0, "08:54:31.123+00:00"],
  [120, "10:54:31.123+02:00"],
  [-210, "05:24:31.123-03:30"],
])("shows people their local time: %d minutes east of UTC", (minutesEast, shown) => {
  expect(localTime(AT, minutesEast)).toBe(shown);
});

it("writes a repeated part of an error once", async () => {
  const cause = new GatewayError("store-unavailable", "connect ECONNREFUSED");
  const error = new GatewayError("store-unavailable", "The database cannot be reached.", {
    retryAfterMs: 1_000,
    cause,
  });
  const { logger, record } = startLogger();
  logger.log("error", "store.failed", { error });
  expect((await record()).error).toEqual({
    name: "store-unavailable",
    message: "The database cannot be reached.",
    cause: { name: "store-unavailable", message: "connect ECONNREFUSED", extra: {} },
    extra: { retryAfterMs: 1_000 },
  });
});

it("writes a line that is logged during a slow write, without waiting for another line", async () => {
  const folder = mkdtempSync(join(tmpdir(), "log-"));
  const fd = openSync(join(folder, "file.log"), "a");
  onTestFinished(() => {
    vi.restoreAllMocks();
    closeSync(fd);
    rmSync(folder, { recursive: true });
  });
  const logger = createLogger({ level: "info", fd });
  const { write } = fs;
  let writes = 0;
  // Longer than the buffer of lines.
  const later = (...args: Parameters<typeof write>) => void setTimeout(() => write(...args), writes++ === 0 ? 200 : 0);
  vi.spyOn(fs, "write").mockImplementation(later as typeof write);
  logger.log("info", "first");
  await expect.poll(() => writes, { interval: 1 }).toBe(1);
  logger.log("info", "second");
  await expect.poll(() => readFileSync(join(folder, "file.log"), "utf8")).toMatch(/first.*\n.*second/);
});

it("puts a stack below its line for people", async () => {
  const { logger, text } = startLogger({ format: "pretty" });
  logger.log("error", "unexpected.error", { error: new TypeError("boom") });
  expect(await text()).toMatch(
    /^\d\d:54:31\.123[+-]\d\d:\d\d error unexpected\.error error="TypeError: boom"\n {4}at .*logger\.test\.ts/,
  );
});
