import { expect, test } from "vitest";
import { GatewayError, TurnStream } from "#generated/clients/typescript/src/index.ts";

type Event = { event: string; data: object };
function started(attempt: number): Event {
  return { event: "turn.started", data: { turn_id: "turn_1", attempt } };
}
function delta(offset: number, text: string): Event {
  return {
    event: "message.delta",
    data: { turn_id: "turn_1", offset, text },
  };
}
const completed: Event = { event: "turn.completed", data: { turn_id: "turn_1" } };
const failed: Event = {
  event: "turn.failed",
  data: { turn_id: "turn_1", error: { name: "turn-timeout", title: "Turn timed out", detail: "It took too long." } },
};

/** The pieces of a reply whose stream has these events, lost after each list of them. */
async function textOf(...streams: Event[][]): Promise<string[]> {
  let opened = 0;
  const open = async () => {
    const events = streams[opened++] ?? [];
    const lines = events.map(
      ({ event, data }, n) => `event: ${event}\nid: ${opened}.${n}\ndata: ${JSON.stringify(data)}\n\n`,
    );
    return new Response(lines.join(""), { headers: { "content-type": "text/event-stream" } });
  };
  const failure = (cause: unknown) => new GatewayError("connection-failed", "Connection failed", { cause });
  const stream = new TurnStream(open, failure, undefined);
  const pieces: string[] = [];
  for await (const piece of stream.text()) pieces.push(piece);
  return pieces;
}

test("yields each piece once if a resumed stream starts with all earlier text", async () => {
  expect(
    await textOf(
      [started(1), delta(0, "Good "), delta(5, "mor")],
      [delta(0, "Good morning")],
      [delta(12, "!"), completed],
    ),
  ).toEqual(["Good ", "mor", "ning", "!"]);
});

test("continues when the reply of another attempt is longer than that of the first", async () => {
  const second = [started(2), delta(0, "Go"), delta(2, "od morn"), delta(9, "ing"), completed];
  expect(await textOf([started(1), delta(0, "Good ")], second)).toEqual(["Good ", "morn", "ing"]);
});

test("yields the reply of another attempt from its start if it differs", async () => {
  const second = [started(2), delta(0, "Hel"), delta(3, "lo"), completed];
  expect(await textOf([started(1), delta(0, "Good ")], second)).toEqual(["Good ", "Hel", "lo"]);
});

test("throws the error of a failed turn, under its name", async () => {
  await expect(textOf([started(1), delta(0, "Good "), failed])).rejects.toMatchObject({
    name: "turn-timeout",
    message: "It took too long.",
    turnId: "turn_1",
  });
});

test("yields the reply of an ended turn, which has no pieces", async () => {
  const whole: Event = { event: "message.completed", data: { turn_id: "turn_1", text: "Good morning" } };
  expect(await textOf([started(1), whole, completed])).toEqual(["Good morning"]);
  expect(await textOf([started(1), delta(0, "Good ")], [whole, completed])).toEqual(["Good ", "morning"]);
});
