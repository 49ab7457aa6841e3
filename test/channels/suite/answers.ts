import { expect, it } from "vitest";
import { START } from "#test/harness/clock.ts";
import { type ChannelUnderTest, callsOn, failed, type Opened } from "../channel-under-test.ts";
import { answer, endless, endlessAnswer, hang, stallAfter, startReceiver, write } from "../receiver.ts";

export const answersTests = (underTest: ChannelUnderTest): void => {
  const { announceTo } = callsOn(underTest);

  it.each([200, 201, 202, 204, 299])("counts %i as delivered", async (code) => {
    expect(await announceTo(answer(code))).toEqual({ kind: "delivered", code });
  });

  it("counts 410 as refused for good", async () => {
    expect(await announceTo(answer(410))).toEqual({ kind: "refused", code: 410, reason: "it answered 410, gone" });
  });

  it.each([400, 401, 403, 404, 409, 429, 500, 502, 503])("may try again after %i", async (code) => {
    expect(await announceTo(answer(code, {}, "no"))).toEqual(failed(`it answered ${code}`, { code }));
  });

  it.each([300, 301, 302, 303, 307, 308])("MUST not follow a redirect (%i): F32", async (code) => {
    await using inside = await startReceiver();
    const outcome = await announceTo(answer(code, { location: `${inside.url}/latest/meta-data` }));
    expect(outcome).toEqual(failed(`it answered ${code}, and redirects are not followed`, { code }));
    expect(inside.connections()).toBe(0);
  });

  it("tells how long the receiver wants to be left alone", async () => {
    const waitOf = async (value: string) =>
      ((await announceTo(answer(429, { "retry-after": value }))) as { retryAfterMs?: number }).retryAfterMs;
    expect(await waitOf("7")).toBe(7_000);
    expect(await waitOf(new Date(START + 90_000).toUTCString())).toBe(90_000);
    expect(await waitOf(new Date(START - 90_000).toUTCString())).toBe(0);
    for (const nonsense of ["soon", "-1", "1e3", "99999999999999", "Sat 21 Nov"])
      expect(await waitOf(nonsense)).toBe(undefined);
  });

  it("waits 15 s for an answer", async () => {
    const outcome = await announceTo(hang, {
      meanwhile: async ({ clock, timersSet }) => {
        await timersSet(1);
        await clock.advance(14_999);
        expect(clock.timers()).toBe(1);
        await clock.advance(1);
      },
    });
    expect(outcome).toEqual(failed("it did not answer in time"));
  });

  it("takes the status for the answer where the rest does not come", async () => {
    const meanwhile = async ({ clock, timersSet }: Opened) => {
      // For the answer, and then for the rest.
      await timersSet(2);
      await clock.advance(5_000);
    };
    expect(await announceTo(stallAfter(200), { meanwhile })).toEqual({ kind: "delivered", code: 200 });
    expect(await announceTo(stallAfter(503), { meanwhile })).toEqual(failed("it answered 503", { code: 503 }));
  });

  it("reads no more than it must of an answer without an end", async () => {
    expect(await announceTo(endlessAnswer(200))).toEqual({ kind: "delivered", code: 200 });
    expect(await announceTo(endlessAnswer(500))).toEqual(failed("it answered 500", { code: 500 }));
  });

  it("may try again when the receiver goes on announcing an answer", async () => {
    const interim = endless("", "HTTP/1.1 102 Processing\r\n\r\n");
    expect(await announceTo(interim)).toEqual(failed("it sent too many interim answers"));
    const early = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(3);
    expect(await announceTo(write(`${early}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n`))).toEqual({
      kind: "delivered",
      code: 200,
    });
  });

  it("takes no other protocol", async () => {
    const upgrade = write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
    expect(await announceTo(upgrade)).toEqual(failed("it broke the connection off"));
  });
};
