import { describe, expect, it, vi } from "vitest";
import { newId } from "#kit/ids.ts";
import { decodeEntries, encodeEntry, type QueuedTurn } from "#store/memory/entry-codec.ts";
import { readOutlines } from "#store/memory/entry-outlines.ts";
import { IdIndex } from "#store/memory/id-index.ts";
import { LogArena } from "#store/memory/log-arena.ts";
import { PackedWriter } from "#store/memory/packed.ts";
import { PackedReader } from "#store/memory/packed-reader.ts";
import type { NewEntry } from "#store/memory/rows.ts";
import { createSessionLogs } from "#store/memory/session-log.ts";
import type { SessionRow } from "#store/memory/session-row.ts";

const TEXTS = {
  empty: "",
  ascii: "Hello",
  latin: "Grüße",
  wide: "日本語",
  astral: "👩‍🚀 𝄞",
  "half a surrogate pair": "a\ud800b",
  nul: "\0\u0001",
  long: "ä".repeat(100_000),
};

describe("packed values", () => {
  it.each(Object.entries(TEXTS))("keep a text: %s", (_, text) => {
    const writer = new PackedWriter();
    writer.begin();
    writer.text(text);
    writer.byte(7);
    const reader = new PackedReader(writer.bytes, 0);
    expect(reader.text()).toBe(text);
    expect(reader.byte()).toBe(7);
  });

  it.each([0, 1, 127, 128, 16_383, 16_384, 2 ** 31, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER])(
    "keep the number %d",
    (count) => {
      const writer = new PackedWriter();
      writer.begin();
      writer.count(count);
      expect(new PackedReader(writer.bytes, 0).count()).toBe(count);
    },
  );

  it("keep ids of ours in 17 bytes, whatever their time", () => {
    const writer = new PackedWriter();
    for (const now of [0, 1, Date.now(), 2 ** 48 - 1]) {
      for (let n = 0; n < 200; n++) {
        const id = newId("turn", now);
        writer.begin();
        writer.id(id, "turn_");
        expect(writer.length).toBe(17);
        expect(new PackedReader(writer.bytes, 0).id("turn_")).toBe(id);
      }
    }
  });

  it.each([
    "",
    "turn_1",
    "turn_01M7YQ8J7J6A6C0HDTZTT81FFU",
    "turn_01m7yq8j7j6a6c0hdtztt81ffy",
    "msg_01M7YQ8J7J6A6C0HDTZTT81FFY",
    "turn_\u012101M7YQ8J7J6A6C0HDTZTT81FF",
  ])("keep an id that is none of ours as it is: %j", (id) => {
    const writer = new PackedWriter();
    writer.begin();
    writer.id(id, "turn_");
    expect(new PackedReader(writer.bytes, 0).id("turn_")).toBe(id);
  });
});

const at = 1_795_000_000_123;
const turnId = newId("turn", at);
const messageId = newId("msg", at);
const usage = { input: 12, output: 300_000 };
const queued: QueuedTurn = {
  surface: "rest",
  caller: "ci",
  model: "fast",
  skillIds: ["one", "two"],
  messageId,
  deliveryId: newId("dlv", at),
};
const more = { cached: 9, reasoning: 0, cost: Number.MAX_SAFE_INTEGER };
const bare: QueuedTurn = { ...queued, model: undefined, skillIds: [], deliveryId: undefined };
const ENTRIES: { entry: NewEntry; queued?: QueuedTurn }[] = [
  ...Object.values(TEXTS).map((text) => {
    return {
      entry: { at, turnId, name: "message.created", messageId, role: "user", text, outside: text === "" },
    } as const;
  }),
  { entry: { at, turnId, name: "message.created", messageId, role: "assistant", text: "", outside: false } },
  {
    entry: {
      at,
      turnId,
      name: "message.created",
      messageId,
      role: "user",
      text: "",
      outside: true,
      context: '{"ü":1}',
    },
  },
  { entry: { at, turnId, name: "message.completed", messageId, text: "Grüße" } },
  { entry: { at, turnId, name: "turn.queued" }, queued },
  { entry: { at, turnId, name: "turn.queued" }, queued: bare },
  { entry: { at, turnId, name: "turn.queued" } },
  { entry: { at, turnId, name: "turn.started", attempt: 3 } },
  { entry: { at, turnId, name: "turn.completed", usage, reply: "Grüße" } },
  { entry: { at, turnId, name: "turn.cancelled", usage, reply: "" } },
  { entry: { at, turnId, name: "turn.completed", usage: { ...usage, more }, reply: "Grüße", model: "slow" } },
  { entry: { at, turnId, name: "turn.cancelled", usage: { ...usage, more }, reply: "" } },
  { entry: { at, turnId, name: "turn.failed", usage, error: { name: "turn-failed", detail: "no" }, model: "ü" } },
  {
    entry: {
      at,
      turnId: "",
      name: "session.compacted",
      before: { messages: 48, tokens: 2 ** 33 },
      after: { messages: 0, tokens: 1 },
    },
  },
  { entry: { at, turnId, name: "turn.failed", usage, error: { name: "turn-failed", detail: "it broke" } } },
  { entry: { at, turnId, name: "turn.failed", usage, error: { name: "turn-timeout", detail: undefined } } },
];

describe("large texts", () => {
  const text = "😀".repeat(50_000);

  it("take no more bytes than in UTF-8, whatever they are made of", () => {
    for (const piece of ["x", "é", "€", "😀", "xé", "x€", "xxxxx😀", "\ud800"]) {
      const large = piece.repeat(10_000);
      const writer = new PackedWriter();
      writer.begin();
      writer.text(large, Buffer.byteLength(large));
      expect(new PackedReader(writer.bytes, 0).text() === large).toBe(true);
      expect(writer.length - 4).toBeLessThanOrEqual(Buffer.byteLength(large));
    }
  });

  it("are written once, whatever stands before them in their session", () => {
    const write = vi.spyOn(PackedWriter.prototype, "text");
    const arena = new LogArena();
    const logs = createSessionLogs(arena);
    const session = { lastSeq: 0, firstSeq: 1, chunk: -1, head: -1, updatedAt: 0 } as unknown as SessionRow;
    const bytes = Buffer.byteLength(text);
    const started = { seq: 0, at, turnId, name: "turn.started", attempt: 1 } as const;
    const said = { seq: 0, at, turnId, name: "message.completed", messageId, text } as const;
    logs.append(session, { ...started }, undefined, false);
    logs.append(session, { ...said }, undefined, false, bytes);
    logs.append(session, { seq: 0, at, turnId, name: "turn.completed", usage, reply: text }, undefined, true);
    expect(write.mock.calls.filter(([written]) => written === text)).toHaveLength(1);
    write.mockRestore();
    expect(logs.read(session, 0, 10).map(({ entry }) => entry)).toMatchObject([
      { ...started, seq: 1 },
      { ...said, seq: 2 },
      { name: "turn.completed", reply: text, seq: 3 },
    ]);
  });
});

describe("the entry codec", () => {
  it("gives every kind of entry back as it was, one after another", () => {
    const bytes = Buffer.concat(
      ENTRIES.map(({ entry, queued }) => {
        const packed = encodeEntry(entry, queued, false, false);
        return Buffer.from(packed.bytes.subarray(0, packed.length));
      }),
    );
    const decoded = decodeEntries(bytes, 0, bytes.length, 41);
    expect(decoded).toEqual(ENTRIES.map(({ entry, queued }, n) => ({ entry: { ...entry, seq: 41 + n }, queued })));
  });

  it("tells of every entry what an erasure has to know, without reading its text", () => {
    const bytes = Buffer.concat(
      ENTRIES.map(({ entry, queued }, n) => {
        const packed = encodeEntry(entry, queued, n > 0 && ENTRIES[n - 1]?.entry.turnId === entry.turnId, false);
        return Buffer.from(packed.bytes.subarray(0, packed.length));
      }),
    );
    const outlines = ENTRIES.map(({ entry, queued }, n) => ({
      seq: 41 + n,
      at,
      name: entry.name,
      turnId: entry.turnId,
      isReply: entry.name === "message.created" && entry.role === "assistant",
      begun: queued && { deliveryId: queued.deliveryId },
    }));
    expect(readOutlines(bytes, 0, bytes.length, 41)).toEqual(outlines);
  });

  it("takes no byte for what most ends of turns have nothing of", () => {
    const end = { at, turnId, name: "turn.completed", reply: "the reply" } as const;
    const lengthOf = (entry: NewEntry) => encodeEntry(entry, undefined, true, true).length;
    // Its kind, its time, and the tokens.
    const least = 1 + 6 + 1 + 3;
    expect(lengthOf({ ...end, usage })).toBe(least);
    expect(lengthOf({ ...end, usage: { ...usage, more: undefined }, model: undefined })).toBe(least);
    expect(lengthOf({ ...end, usage, model: "slow" })).toBe(least + 5);
    expect(lengthOf({ ...end, usage: { ...usage, more: { ...more, cost: 5 } } })).toBe(least + 3);
  });

  it("writes a reply once: the end of the turn takes it from the entry before", () => {
    const message = encodeEntry(
      { at, turnId, name: "message.completed", messageId, text: "the reply" },
      undefined,
      false,
      false,
    );
    const first = Buffer.from(message.bytes.subarray(0, message.length));
    const end = encodeEntry({ at, turnId, name: "turn.completed", usage, reply: "the reply" }, undefined, true, true);
    const second = Buffer.from(end.bytes.subarray(0, end.length));
    expect(second.includes("the reply")).toBe(false);
    const [, ended] = decodeEntries(Buffer.concat([first, second]), 0, first.length + second.length, 1);
    expect(ended?.entry).toMatchObject({ name: "turn.completed", reply: "the reply" });
  });
});

describe("the turn index", () => {
  it("finds every turn among many, also while others come and go", () => {
    const index = new IdIndex();
    const ids = Array.from({ length: 20_000 }, (_, n) => newId("turn", n));
    const place = (n: number) => ({ ordinal: n + 1, seq: n * 3 });
    for (const [n, id] of ids.entries()) index.add(id, place(n));
    for (const [n, id] of ids.entries()) if (n % 3 === 0) index.delete(id, place(n));
    for (let n = 0; n < 20_000; n++) {
      const id = newId("turn", n);
      index.add(id, { ordinal: 1, seq: 1 });
      index.delete(id, { ordinal: 1, seq: 1 });
    }
    for (const [n, id] of ids.entries()) {
      const found = index.find(id, ({ seq }) => seq === n * 3);
      expect(found).toEqual(n % 3 === 0 ? undefined : place(n));
    }
  });

  it("asks who knows, where two ids share a hash", () => {
    const index = new IdIndex();
    index.add("same", { ordinal: 1, seq: 10 });
    index.add("same", { ordinal: 2, seq: 20 });
    expect(index.find("same", ({ ordinal }) => ordinal === 2)).toEqual({ ordinal: 2, seq: 20 });
    expect(index.find("same", () => false)).toBeUndefined();
  });
});
