import { expect, it } from "vitest";
import { type ChannelUnderTest, callsOn, replyOf, SECRET } from "../channel-under-test.ts";
import { answer, reset, startReceiver } from "../receiver.ts";

export const requestsTests = (underTest: ChannelUnderTest): void => {
  const { announceTo, openFor } = callsOn(underTest);

  it("posts JSON to its address, on a connection of its own", async () => {
    await using receiver = await startReceiver();
    const { channel, signal } = openFor(receiver);
    await channel.announce(replyOf({ reply: "Ünï 🙂" }), signal);
    await channel.announce(replyOf({ hops: 2 }), signal);
    const [first, second] = receiver.requests;
    expect(first).toMatchObject({ method: "POST", path: "/in?of=ops" });
    expect(first?.headers).toMatchObject({
      "content-type": "application/json",
      "content-length": String(first?.body.length),
      "x-gateway-hops": "1",
      host: `127.0.0.1:${receiver.port}`,
    });
    expect(JSON.stringify(JSON.parse(String(first?.body)))).toContain("Ünï 🙂");
    expect(second?.headers["x-gateway-hops"]).toBe("3");
    expect(receiver.connections()).toBe(2);
  });

  it("sends many at once, each its own, and a long one whole", async () => {
    await using receiver = await startReceiver();
    const { channel, signal } = openFor(receiver);
    const texts = Array.from({ length: 50 }, (_, n) => `number ${n}`);
    const outcomes = await Promise.all(texts.map((reply) => channel.announce(replyOf({ reply }), signal)));
    expect(outcomes.every(({ kind }) => kind === "delivered")).toBe(true);
    const bodies = receiver.requests.map(({ body }) => String(body));
    for (const text of texts) expect(bodies.filter((body) => body.includes(`"${text}"`))).toHaveLength(1);
    await channel.announce(replyOf({ reply: "x".repeat(4 * 1024 ** 2) }), signal);
    expect(() => JSON.parse(String(receiver.requests.at(-1)?.body))).not.toThrow();
  });

  it("says the same at every attempt, but for what has to be new", async () => {
    await using receiver = await startReceiver([answer(500), answer(200)]);
    const { channel, clock, signal } = openFor(receiver);
    await channel.announce(replyOf(), signal);
    await clock.advance(60_000);
    await channel.announce(replyOf(), signal);
    const [first, second] = receiver.requests;
    expect(second?.body).toEqual(first?.body);
    expect(second?.headers["webhook-id"]).toBe(first?.headers["webhook-id"]);
  });

  it("MUST not tell its address or its secret when it fails", async () => {
    const told: string[] = [];
    for (const behaviour of [reset, answer(302, { location: "/in?of=ops" }), answer(500, {}, SECRET)]) {
      told.push(JSON.stringify(await announceTo(behaviour)));
    }
    expect(told.join()).not.toMatch(/127\.0\.0\.1|of=ops|a-secret/);
  });
};
