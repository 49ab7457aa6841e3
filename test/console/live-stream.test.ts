import { describe, expect, it } from "vitest";
import { streamOf } from "#console/lib/live-stream.ts";

function at(ms: number) {
  return new Date(ms).toISOString();
}

describe("the stream of requests and turns", () => {
  it("MUST be newest first, with a turn above the request that started it", () => {
    const requests = [
      { id: "request 3", at: at(3_000) },
      { id: "request 1", at: at(1_000) },
    ];
    const turns = [
      { id: "turn 3", created_at: at(3_000) },
      { id: "turn of a beat", created_at: at(2_000) },
      { id: "turn 1", created_at: at(1_001) },
    ];
    const ids = (most: number) => streamOf(requests, turns, most).map(({ request, turn }) => (request ?? turn)?.id);
    expect(ids(10)).toEqual(["turn 3", "request 3", "turn of a beat", "turn 1", "request 1"]);
    expect(ids(2)).toEqual(["turn 3", "request 3"]);
    expect(streamOf([], [], 2)).toEqual([]);
  });
});
