import { describe, expect, test } from "vitest";
import { eventFaults, faultsOf } from "./contract.ts";
import { createEventReader } from "./sse.ts";

// The tests of the REST surface depend on the checks of replies. Each of these mistakes must be reported.

const REQUEST_ID = "req_01M7YN2C7DT5V3D1HM9SE7C4WP";
const LIST = { method: "GET", path: "/api/v1/skills/list" };
const PRIVATE = { "cache-control": "no-store", "x-content-type-options": "nosniff" };
function reply(status: number, body: unknown, headers: Record<string, string> = {}) {
  const type = status < 400 ? "application/json" : "application/problem+json";
  return {
    status,
    headers: new Headers({ "content-type": type, "x-request-id": REQUEST_ID, ...PRIVATE, ...headers }),
    body: typeof body === "string" ? body : JSON.stringify(body),
  };
}
function problem(name: string, status: number, title: string, more: object = {}) {
  return {
    type: `/docs/errors.html#${name}`,
    title,
    status,
    request_id: REQUEST_ID,
    ...more,
  };
}
const unauthenticated = problem("unauthenticated", 401, "Authentication failed");
const WWW = { "www-authenticate": "Bearer" };
const limited = problem("rate-limited", 429, "Rate limit exceeded", { retry_after_ms: 1_500 });
const LIMITED = { "retry-after": "2", ratelimit: "x", "ratelimit-policy": "x" };

describe("the check of a reply", () => {
  test.each([
    ["a success", LIST, reply(200, { skills: [], invalid: [] })],
    ["a problem", LIST, reply(401, unauthenticated, WWW)],
    ["a problem that asks to wait", LIST, reply(429, limited, LIMITED)],
    [
      "nothing, where nothing is said",
      { method: "DELETE", path: "/api/v1/keys/x" },
      { ...reply(204, ""), headers: new Headers({ "x-request-id": REQUEST_ID, ...PRIVATE }) },
    ],
    ["an unknown path", { method: "GET", path: "/x" }, reply(404, problem("not-found", 404, "Not found"))],
  ])("finds nothing wrong with %s", (_, place, good) => {
    expect(faultsOf(place, good)).toEqual([]);
  });

  test.each([
    ["a status that is not described", reply(201, { skills: [], invalid: [] }), "no such status"],
    ["a field too many", reply(200, { skills: [], invalid: [], more: 1 }), "must NOT have additional properties"],
    ["a field too few", reply(200, {}), "required"],
    ["no JSON", reply(200, "<html>"), "not JSON"],
    [
      "another media type",
      reply(200, { skills: [], invalid: [] }, { "content-type": "text/html" }),
      "content-type is text/html",
    ],
    ["no request id", reply(200, { skills: [], invalid: [] }, { "x-request-id": "" }), "x-request-id is missing"],
    [
      "a header that is not described",
      reply(200, { skills: [], invalid: [] }, { "x-powered-by": "Express" }),
      "x-powered-by",
    ],
    ["a reply for caches", reply(200, { skills: [], invalid: [] }, { "cache-control": "no-cache" }), "lacks no-store"],
    ["a type to guess", reply(200, { skills: [], invalid: [] }, { "x-content-type-options": "" }), "is not nosniff"],
    ["a wrong length", reply(200, { skills: [], invalid: [] }, { "content-length": "3" }), "content-length is 3"],
    ["a path of this machine", reply(200, { skills: [], invalid: [], more: process.cwd() }), "tells of"],
    ["no WWW-Authenticate", reply(401, unauthenticated), "www-authenticate is missing"],
    ["an error that it does not list", reply(404, problem("turn-not-found", 404, "Turn not found")), "no such status"],
    ["an error of another operation", reply(400, problem("parse-error", 400, "Parse error")), "not among its x-errors"],
    ["an error of another status", reply(400, problem("internal", 500, "Internal error")), "has the status 500"],
    ["another title", reply(401, { ...unauthenticated, title: "Who are you" }, WWW), "has the title"],
    [
      "another request id in the body",
      reply(401, { ...unauthenticated, request_id: REQUEST_ID.replace("0", "1") }, WWW),
      "is not x-request-id",
    ],
    ["a cause", reply(500, problem("internal", 500, "Internal error", { detail: "x" })), "reveals its cause"],
    ["a stack", reply(500, problem("internal", 500, "Internal error", { detail: "x\n    at y" })), "reveals its cause"],
    ["no Retry-After", reply(429, problem("rate-limited", 429, "Rate limit exceeded")), "without Retry-After"],
    ["a Retry-After of other seconds", reply(429, limited, { ...LIMITED, "retry-after": "9" }), "Retry-After is 9"],
    [
      "a Retry-After that is not a number",
      reply(429, limited, { ...LIMITED, "retry-after": "soon" }),
      "no whole number",
    ],
    ["no RateLimit", reply(429, limited, { "retry-after": "2" }), "RateLimit"],
  ])("finds %s", (_, bad, fault) => {
    expect(faultsOf(LIST, bad).join("\n")).toContain(fault);
  });
});

describe("the check of a stream", () => {
  const good = {
    event: "turn.started",
    id: "3",
    data: { turn_id: "turn_01M7YN0XEMM1B7E5S8YF3GKP2N", session_id: "x", seq: 3, attempt: 1 },
  };
  const read = (text: string) => {
    const found: unknown[] = [];
    const { push, end } = createEventReader(
      (event) => found.push(event),
      (fault) => found.push(fault),
    );
    push(Buffer.from(text));
    end();
    return found;
  };

  test("finds nothing wrong with a valid event, and the error of another", () => {
    expect(eventFaults(good)).toEqual([]);
    expect(eventFaults({ ...good, data: { ...good.data, more: 1 } })).not.toEqual([]);
    expect(eventFaults({ ...good, event: "turn.begun" })).not.toEqual([]);
  });

  test("reads events and comments, and nothing else", () => {
    expect(read(":\n\nevent: a\nid: 1\ndata: {}\n\n")).toEqual([{ event: "a", id: "1", data: {} }]);
    for (const bad of [
      "event: a\ndata: {}\n\n",
      "event: a\nid: 1\ndata: {\n\n",
      "retry: 1\n\n",
      "event: a\nid: 1\ndata: {}\n",
    ])
      expect(read(bad)[0]).toEqual(expect.stringMatching(/^the (stream|data)/));
  });
});
