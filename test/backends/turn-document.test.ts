import { expect, it } from "vitest";
import { createJoiner } from "#backends/characters.ts";
import { newest, readPiece, turnDocument } from "#backends/turn-document.ts";
import { turnOf } from "./suite.ts";

function said(text: string) {
  return { role: "user" as const, text, outside: false };
}

it("has the newest messages that fit, and the number of the others", () => {
  const all = ["aaaa", "bb", "cc"].map(said);
  expect(newest(all, 8)).toEqual({ history: all, historyOmitted: 0 });
  expect(newest(all, 7)).toEqual({ history: all.slice(1), historyOmitted: 1 });
  expect(newest(all, 1)).toEqual({ history: [], historyOmitted: 3 });
  expect(newest([])).toEqual({ history: [], historyOmitted: 0 });
});

it("reads no history if it is not requested", async () => {
  const history = () => Promise.reject(new Error("read"));
  expect(await turnDocument(turnOf({ history }), { history: false })).toMatchObject({ history: [], historyOmitted: 0 });
});

it.each([
  [{ text: 1 }],
  [null],
  ["text"],
  [[]],
  [{ usage: { input: 1.5, output: 0 } }],
  [{ alive: false }],
  [{ error: "x" }],
  [{}],
])("takes %j for an empty piece", (piece) => {
  expect(() => readPiece(piece)).toThrow("the agent sent data that is not a piece of a reply");
});

it("joins split characters, wherever they were cut", () => {
  const text = "a🙂🙂b👩‍🚀";
  for (let size = 1; size < 5; size++) {
    const whole = createJoiner();
    const pieces: string[] = [];
    for (let from = 0; from < text.length; from += size) pieces.push(whole(text.slice(from, from + size)));
    expect(pieces.join("")).toBe(text);
    for (const piece of pieces) expect(piece).toBe(Buffer.from(piece).toString());
  }
});
