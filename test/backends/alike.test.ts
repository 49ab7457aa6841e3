import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WIRES } from "#backends/model/wires/wires.ts";
import type { Pieces, Said } from "#backends/outbound/alike.ts";
import { EventReader, MOST_OF_AN_EVENT } from "#backends/outbound/events.ts";

type Heard = (string | { other: string })[];

const saidBy: Pieces["saidBy"] = (_name, data) => {
  const kind = WIRES.chat(JSON.parse(data) as Record<string, unknown>);
  return typeof kind === "object" && "text" in kind && !("ending" in kind) ? kind : undefined;
};

/** What a reader tells of these bytes, cut at these places: texts that follow each other as one. `parsed`: how many texts it had to parse. */
const read = (bytes: Buffer, cuts: readonly number[], isQuick: boolean): { heard: Heard; parsed: number } => {
  const heard: Heard = [];
  let parsed = 0;
  const say = (text: string) => {
    if (typeof heard.at(-1) === "string") heard[heard.length - 1] += text;
    else heard.push(text);
  };
  const onEvent = (name: string, data: string): Said | undefined => {
    const said = data.startsWith("{") ? saidBy(name, data) : undefined;
    if (said) {
      parsed++;
      say(said.text);
    } else heard.push({ other: `${name} ${data}` });
    return said;
  };
  const pieces = isQuick ? { saidBy, onText: say } : undefined;
  const reader = new EventReader("they", onEvent, () => {}, MOST_OF_AN_EVENT, pieces);
  const ends = [...new Set(cuts.map((cut) => Math.min(cut, bytes.length)))].sort((a, b) => a - b);
  let from = 0;
  for (const to of [...ends, bytes.length]) {
    // Another's as soon as the call returns; around it stands what was read before.
    const part = Buffer.concat([STALE, bytes.subarray(from, to), STALE]);
    reader.push(part, STALE.length, part.length - STALE.length);
    part.fill(0);
    from = to;
    reader.tell();
  }
  reader.end();
  return { heard, parsed };
};

const chunkOf = (content: unknown, more: object = {}): object => ({
  id: "chatcmpl-1",
  choices: [{ index: 0, delta: { content }, finish_reason: null }],
  ...more,
});
const eventOf = (document: object, end = "\n"): string => `data: ${JSON.stringify(document)}${end}${end}`;

const STALE = Buffer.from(eventOf(chunkOf("stale")));

describe("events that differ in their text alone", () => {
  it("are not parsed but for the first", () => {
    const texts = ["Good ", "mor", "ning, ", "ünï", "🙂", "{}", "0"];
    const all = texts.map((text) => eventOf(chunkOf(text))).join("");
    expect(read(Buffer.from(all), [], true)).toEqual({ heard: [texts.join("")], parsed: 1 });
  });

  it("say what they say also where a text looks like what stands around it", () => {
    const texts = [
      "content",
      "chatcmpl-1",
      "index",
      'a"b',
      "back\\slash",
      "line\nbreak",
      "any text",
      '"},"x":"',
      "data: ",
    ];
    const all = texts.flatMap((text) => [eventOf(chunkOf(text)), eventOf(chunkOf(" and "))]).join("");
    expect(read(Buffer.from(all), [], true).heard).toEqual([texts.map((text) => `${text} and `).join("")]);
  });

  it("end with the first one that is something else", () => {
    const call = { id: "x", choices: [{ index: 0, delta: { tool_calls: [{ index: 0 }] } }] };
    const all = [chunkOf("a"), chunkOf("b"), call, chunkOf("c")].map((one) => eventOf(one)).join("");
    const { heard } = read(Buffer.from(`${all}data: [DONE]\n\n`), [], true);
    expect(heard).toEqual(["ab", { other: ` ${JSON.stringify(call)}` }, "c", { other: " [DONE]" }]);
  });

  it("are not looked for any longer where each has something of its own", () => {
    let parsed = 0;
    const counting: Pieces["saidBy"] = (name, data) => {
      parsed++;
      return saidBy(name, data);
    };
    const reader = new EventReader("they", saidBy, () => {}, MOST_OF_AN_EVENT, { saidBy: counting, onText: () => {} });
    for (let n = 0; n < 100; n++) reader.push(Buffer.from(eventOf(chunkOf("a", { random: `${n}` }))));
    expect(parsed).toBeLessThan(12);
  });

  it("are told together where they came together, before whatever comes behind them", () => {
    const told: string[] = [];
    const [before, after] = eventOf(chunkOf("\0")).split("\\u0000") as [string, string];
    const bad = Buffer.concat([Buffer.from(before), Buffer.from([0xc3, 0x28]), Buffer.from(after)]);
    const reader = new EventReader(
      "they",
      (name, data) => {
        const said = data.startsWith("{") ? saidBy(name, data) : undefined;
        told.push(said ? `read ${said.text}` : data);
        return said;
      },
      () => told.push("comment"),
      MOST_OF_AN_EVENT,
      { saidBy, onText: (text) => told.push(text) },
    );
    const textsOf = (texts: string) => [...texts].map((text) => eventOf(chunkOf(text))).join("");
    const toldOf = (bytes: string | Buffer) => {
      reader.push(Buffer.from(bytes as string));
      return told.splice(0);
    };
    expect(toldOf(textsOf("abc"))).toEqual(["read a"]);
    // What comes in another piece of the same read goes with it.
    expect(toldOf(textsOf("de"))).toEqual([]);
    reader.tell();
    reader.tell();
    expect(told.splice(0)).toEqual(["bcde"]);
    expect(toldOf(`${textsOf("fg")}: here\n\n${textsOf("hi")}`)).toEqual([]);
    expect(toldOf(`data: [DONE]\n\n${textsOf("jk")}`)).toEqual(["fghi", "comment", "[DONE]", "read j"]);
    expect(() => reader.push(Buffer.concat([Buffer.from(textsOf("l")), bad]))).toThrow(/no UTF-8/);
    expect(told).toEqual(["kl"]);
  });

  it("are refused where their text is no UTF-8, as all others", () => {
    const [before, after] = eventOf(chunkOf("\0")).split("\\u0000") as [string, string];
    const good = Buffer.from(`${before}a${after}`);
    const bad = Buffer.concat([Buffer.from(before), Buffer.from([0xc3, 0x28]), Buffer.from(after)]);
    expect(() => read(Buffer.concat([good, good, bad]), [], true)).toThrow(/no UTF-8/);
  });

  it("MUST be told as if each were parsed, whatever they are and however their bytes are cut", () => {
    const text = fc.oneof(
      fc.string({ maxLength: 8 }),
      fc.string({ unit: "grapheme", maxLength: 4 }),
      fc.constantFrom("", "content", "id", "x", '"', "\\", "\ufffd", "chatcmpl-1", "null"),
    );
    const more = fc.constantFrom({}, {}, {}, { id: "x" }, { usage: null }, { note: "x" });
    const event = fc.oneof(
      {
        weight: 8,
        arbitrary: fc
          .tuple(text, more, fc.constantFrom("\n", "\n", "\r\n"))
          .map(([said, own, end]) => eventOf(chunkOf(said, own), end)),
      },
      {
        weight: 1,
        arbitrary: fc.constantFrom(": here\n\n", "\n", "id: 5\n", "event: ping\ndata: {}\n\n", "data: [DONE]\n\n"),
      },
      { weight: 1, arbitrary: fc.constant(eventOf({ id: "x", choices: [{ index: 0, delta: { tool_calls: [1] } }] })) },
    );
    const cuts = fc.array(fc.nat({ max: 2_000 }), { maxLength: 6 });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 20 }), cuts, (events, places) => {
        const bytes = Buffer.from(`${events.join("")}\n`);
        expect(read(bytes, places, true).heard).toEqual(read(bytes, places, false).heard);
      }),
      { numRuns: 500 },
    );
  });
});
