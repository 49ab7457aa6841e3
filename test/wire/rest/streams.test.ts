import { describe, expect, test } from "vitest";
import { createPuppet, type Played } from "#test/harness/backends.ts";
import type { StreamEvent } from "#test/harness/contract.ts";
import { shareGateway } from "#test/harness/gateway.ts";
import { openConnection, requestText } from "#test/harness/raw.ts";
import { checkReply } from "#test/harness/rest.ts";

const TEXT = "Grüße 👩‍👩‍👧 an alle, 你好!";
const echo = await shareGateway({
  config: {
    agents: {
      main: { backend: "echo", echo: { chunks: 7 } },
      broken: { backend: "echo", echo: { fail: "no such luck" } },
    },
    gateway: { defaultAgent: "main" },
  },
});
const puppet = createPuppet();
const played = await shareGateway({ makeBackend: () => puppet.backend });

function namesOf(events: readonly StreamEvent[]) {
  return events.map(({ event }) => event);
}
function textOf(events: readonly { event: string; data: object }[]) {
  return events.flatMap(({ event, data }) => (event === "message.delta" && "text" in data ? [data.text] : [])).join("");
}
function follow(gateway: typeof echo, turnId: string, lastEventId?: string) {
  return gateway.rest.stream("turns.events", {
    path: { turn_id: turnId },
    ...(lastEventId !== undefined && { headers: { "last-event-id": lastEventId } }),
  });
}

/** A turn that has written these pieces, and the events that its reader got of them. */
async function playPieces(pieces: readonly string[]): Promise<{ turn: Played; told: StreamEvent[]; turnId: string }> {
  const stream = await played.rest.stream("chat.send", { body: { message: "hi" } });
  const turn = await puppet.next();
  const told = [(await stream.events.next()).value as StreamEvent];
  for (const piece of pieces) {
    turn.say(piece);
    told.push((await stream.events.next()).value as StreamEvent);
  }
  await stream.events.return(undefined);
  return { turn, told, turnId: turn.turn.turnId };
}

/** A streamed message over a separate socket, after its head was read. */
async function openStream() {
  const connection = await openConnection(played.url);
  const place = { method: "POST", path: "/api/v1/chat/send" };
  const headers = { authorization: `Bearer ${played.key}`, "content-type": "application/json" };
  connection.write(requestText(place, headers, JSON.stringify({ message: "hi", stream: true })));
  await connection.head(place);
  return connection;
}

describe("a reply that is being written", () => {
  test("starts, arrives piece by piece, completes, and ends", async () => {
    const { headers, all } = await echo.rest.stream("chat.send", { body: { message: TEXT } });
    expect(headers.get("cache-control")).toBe("no-store, no-transform");
    const events = await all();
    expect([...new Set(namesOf(events))]).toEqual([
      "turn.started",
      "message.delta",
      "message.completed",
      "turn.completed",
    ]);
    expect(textOf(events)).toBe(TEXT);
    expect(events.at(-2)?.data.text).toBe(TEXT);
    expect(events.at(-1)?.data).toMatchObject({ status: "completed", reply: TEXT });
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
  });

  test("arrives while it is written, not afterwards", async () => {
    const { turn, told } = await playPieces(["one ", "two ", "three"]);
    expect(told.slice(1).map(({ data }) => [data.offset, data.text])).toEqual([
      [0, "one "],
      [4, "two "],
      [8, "three"],
    ]);
    turn.end();
  });

  test("that fails ends with turn.failed, whatever was written", async () => {
    const failed = await echo.rest.stream("chat.send", { body: { message: "hi", agent: "broken" } });
    expect(namesOf(await failed.all())).toEqual(["turn.started", "turn.failed"]);
    const { turn, turnId, told } = await playPieces(["half"]);
    const rest = await follow(played, turnId, told.at(-1)?.id);
    turn.fail(new Error("gone"));
    expect(namesOf(await rest.all())).toEqual(["message.completed", "turn.failed"]);
  });

  test("that is cancelled ends with turn.cancelled and the written text", async () => {
    const { turnId, told } = await playPieces(["half"]);
    const rest = await follow(played, turnId, told.at(-1)?.id);
    await played.rest.call("turns.cancel", { path: { turn_id: turnId } });
    expect((await rest.all()).at(-1)).toMatchObject({ event: "turn.cancelled", data: { reply: "half" } });
  });

  test("is read by the generated client, which continues after a known event", async () => {
    const events = [];
    for await (const event of echo.client.chat.stream({ message: TEXT })) events.push(event);
    expect(textOf(events)).toBe(TEXT);
    const known = events[events.length - 2] as (typeof events)[number];
    const rest = [];
    for await (const event of echo.client.turns.events(known.data.turn_id, { after: known.id })) rest.push(event.event);
    expect(rest).toEqual(["turn.completed"]);
  });
});

describe("a stream that is resumed", () => {
  const PIECES = ["Grü", "ße 👩‍👩", "‍👧 an ", "alle"];
  const places = Array.from({ length: PIECES.length + 1 }, (_, n) => n);

  test.each(places)("while the reply is written, after event %i, repeats and omits nothing", async (at) => {
    const { turn, told, turnId } = await playPieces(PIECES);
    const rest = await follow(played, turnId, told[at]?.id);
    turn.say("!");
    turn.end();
    const events = await rest.all();
    expect(textOf(told.slice(0, at + 1)) + textOf(events)).toBe(`${PIECES.join("")}!`);
    expect(namesOf(events).slice(-2)).toEqual(["message.completed", "turn.completed"]);
    expect(namesOf(events)).not.toContain("turn.started");
    expect(textOf(events.slice(0, 1))).toMatch(new RegExp(`^${PIECES.slice(at).join("")}`));
  });

  test("after the turn's end starts after each of its events", async () => {
    const all = await (await echo.rest.stream("chat.send", { body: { message: TEXT } })).all();
    const turnId = String(all[0]?.data.turn_id);
    for (const [at, { id }] of all.entries()) {
      const rest = await (await follow(echo, turnId, id)).all();
      // After the end there are no pieces, but the complete message, unless it was already sent.
      expect(rest).toEqual(all.slice(at + 1).filter(({ event }) => event !== "message.delta"));
    }
  });

  test("without Last-Event-ID starts at the beginning", async () => {
    const { turn, turnId } = await playPieces(["one ", "two"]);
    const again = await follow(played, turnId);
    turn.end();
    const events = await again.all();
    expect(namesOf(events)).toEqual(["turn.started", "message.delta", "message.completed", "turn.completed"]);
    expect(textOf(events)).toBe("one two");
  });

  test.each(["", "abc", "999", "999.5", "1e3", "-1", "4.5.6", "3; drop", "99999999999999999999"])(
    "with an id that the turn never sent (%j) starts at the beginning",
    async (id) => {
      const { json } = await echo.rest.call("chat.send", { body: { message: "hi" } });
      const events = await (await follow(echo, String(json.turn_id), id)).all();
      expect(namesOf(events)).toEqual(["turn.started", "message.completed", "turn.completed"]);
    },
  );

  test("with an id of another turn of its session starts at the beginning", async () => {
    const body = { message: "hi", session_id: "two turns" };
    const [first, second] = [await echo.rest.call("chat.send", { body }), await echo.rest.call("chat.send", { body })];
    const idsOf = async ({ json }: typeof first) =>
      (await (await follow(echo, String(json.turn_id))).all()).map(({ id }) => id);
    for (const [turn, other] of [
      [first, second],
      [second, first],
    ] as const) {
      for (const id of await idsOf(other)) {
        expect(namesOf(await (await follow(echo, String(turn.json.turn_id), id)).all())[0]).toBe("turn.started");
      }
    }
  });
});

describe("a client that disconnects during a stream", () => {
  test("ends only its stream: the turn continues, can be read, and its stream can be resumed", async () => {
    const caller = new AbortController();
    const { events } = await played.rest.stream("chat.send", { body: { message: "hi" }, signal: caller.signal });
    const turn = await puppet.next();
    turn.say("one ");
    await events.next();
    const last = (await events.next()).value as StreamEvent;
    caller.abort();
    await expect(events.next()).rejects.toThrow("aborted");
    await played.logged("request", { operation: "chat.send", status: 200 });
    expect(turn.signal.aborted).toBe(false);

    turn.say("two");
    const path = { turn_id: turn.turn.turnId };
    expect((await played.rest.call("turns.get", { path })).json.status).toBe("running");
    const rest = await follow(played, turn.turn.turnId, last.id);
    turn.end();
    expect(textOf(await rest.all())).toBe("two");
    expect((await played.rest.call("turns.get", { path })).json).toMatchObject({
      status: "completed",
      reply: "one two",
    });
  });
});

test("bytes that a client writes after its request are never part of a stream", async () => {
  await using connection = await openStream();
  const turn = await puppet.next();
  turn.say("one");
  await connection.until((text) => text.includes("message.delta"));
  connection.write("this is no request\r\n\r\n");
  turn.say(" two");
  turn.end();
  await connection.until((text) => text.includes("problem"));
  await connection.closed;
  const [stream, refusal, ...more] = (await connection.until(() => true)).split("HTTP/1.1 ").slice(1);
  expect(stream).toContain("turn.completed");
  expect(stream).toMatch(/\r\n0\r\n\r\n$/);
  expect(refusal).toMatch(/^400 /);
  expect(more).toEqual([]);
  const [head = "", body = ""] = (refusal as string).split("\r\n\r\n");
  const headers = head
    .split("\r\n")
    .slice(1)
    .map((line) => line.split(": ", 2) as [string, string]);
  checkReply({ method: "POST", path: "/api/v1/chat/send" }, 400, new Headers(headers), body);
});
