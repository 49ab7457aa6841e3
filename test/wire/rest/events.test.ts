import { describe, expect, test } from "vitest";
import type { RestReplies } from "#generated/rest-handlers.ts";
import { BackendError } from "#kit/errors.ts";
import { createPuppet, type Played } from "#test/harness/backends.ts";
import { shareGateway, startGateway } from "#test/harness/gateway.ts";
import type { Reply } from "#test/harness/rest.ts";
import { recorderOf } from "./recorder.ts";

type Event = RestReplies["events.get"];
const gateway = await shareGateway();
const { hooks, console } = gateway;
async function get(event_id: unknown, { console } = gateway): Promise<Event> {
  return (await console.call("events.get", { path: { event_id: String(event_id) } })).json as unknown as Event;
}
async function list(query: Record<string, string> = {}, { console } = gateway) {
  return (await console.call("events.list", { query })).json as unknown as RestReplies["events.list"];
}
function idOf({ json }: Reply): string {
  return String(json.eventId);
}

describe("events.get", () => {
  test("shows an event of a wake, unchanged", async () => {
    const metadata = { source: "ci", deep: { list: [1, null] } };
    const { json } = await hooks.wake({ text: "The build is green.\n", metadata });
    const event = await get(json.eventId);
    expect(event).toMatchObject({
      event_id: json.eventId,
      agent: "main",
      text: "The build is green.\n",
      metadata,
      caller: "shared",
      status: "queued",
      attempts: 0,
      ended_at: null,
      turn_id: null,
      reason: null,
      delivery_id: json.deliveryId,
    });
    expect(Date.now() - Date.parse(event.created_at)).toBeLessThan(60_000);
  });
});

describe("events.list", () => {
  test("has them newest first, in pages with each event once", async () => {
    await using alone = await startGateway();
    const sent: string[] = [];
    for (let n = 0; n < 7; n++) sent.unshift(idOf(await alone.hooks.wake({ text: `event ${n}` })));
    const paged: string[] = [];
    let cursor: string | null | undefined;
    do {
      const page = await list({ limit: "3", ...(cursor && { cursor }) }, alone);
      paged.push(...page.events.map(({ event_id }) => event_id));
      cursor = page.next_cursor;
    } while (cursor);
    expect(paged).toEqual(sent);
  });

  test("finds by agent and by state", async () => {
    const echo = { backend: "echo" } as const;
    const config = { gateway: { defaultAgent: "a" }, agents: { a: echo, b: echo } };
    await using two = await startGateway({ config });
    const ofA = idOf(await two.hooks.wake({ text: "a" }));
    const ofB = idOf(await two.hooks.wake({ text: "b", agent: "b", mode: "now" }));
    await two.logged("beat.ran", { agent: "b" });
    const ids = async (query: Record<string, string>) =>
      (await list(query, two)).events.map(({ event_id }) => event_id);
    expect([await ids({ agent: "a" }), await ids({ agent: "b" }), await ids({ agent: "c" })]).toEqual([
      [ofA],
      [ofB],
      [],
    ]);
    expect([await ids({ status: "queued" }), await ids({ status: "handled" })]).toEqual([[ofA], [ofB]]);
    expect(await ids({ agent: "a", status: "handled" })).toEqual([]);
  });
});

describe("events.replay", () => {
  test("queues a dead event again, which is handled, and its delivery shows each step", async () => {
    const puppet = createPuppet();
    await using failing = await startGateway({ makeBackend: () => puppet.backend });
    const beat = async (text: string, end: (run: Played) => void) => {
      const ran = failing.linesOf("beat.ran").length;
      const { json } = await failing.hooks.wake({ text, mode: "now" });
      end(await puppet.next());
      await failing.until(() => failing.linesOf("beat.ran").length > ran);
      return json;
    };
    const fail = (run: Played) => run.fail(new BackendError("out of order"));
    const json = await beat("hi", fail);
    await beat("a second beat", fail);
    await beat("a third", fail);
    expect(await get(json.eventId, failing)).toMatchObject({ status: "dead", attempts: 3, reason: "out of order" });
    const path = { event_id: String(json.eventId) };
    const { json: queued } = await failing.console.call("events.replay", { path, key: failing.adminKey });
    expect(queued).toMatchObject({ event_id: json.eventId, status: "queued", attempts: 0, ended_at: null });
    await beat("one more", (run) => run.end());
    expect(await get(json.eventId, failing)).toMatchObject({ status: "handled" });
    const recorder = recorderOf(failing);
    const names = await recorder.names(String(json.deliveryId));
    expect(names.filter((name) => name.startsWith("event."))).toEqual([
      "event.queued",
      "event.returned",
      "event.returned",
      "event.requeued",
      "event.taken",
      "event.handled",
    ]);
    expect(await recorder.detailOf(String(json.deliveryId), "event.requeued")).toEqual({ by: "admin" });
    expect(await recorder.newest({ id: String(json.eventId) })).toMatchObject({ outcome: "handled" });
  });

  test("refuses an event that is not dead or does not exist", async () => {
    const path = { event_id: idOf(await hooks.wake({ text: "waits" })) };
    expect((await console.call("events.replay", { path })).error).toBe("event-not-dead");
    const nobody = { event_id: "evt_01M7YN1B2AZD4Q9RXC5HT7N3MA" };
    expect((await console.call("events.replay", { path: nobody })).error).toBe("event-not-found");
    expect((await console.call("events.replay", { path, body: { again: true } })).error).toBe("invalid-request");
  });
});
