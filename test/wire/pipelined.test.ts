import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createPipelined } from "#wire/pipelined.ts";

type Begun = { url: string; res: ServerResponse };

/** A server whose answers the test gives, and a connection to it. */
const serve = async () => {
  const begun: Begun[] = [];
  const server = createServer(createPipelined(({ url = "" }, res) => void begun.push({ url, res })));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1").setEncoding("latin1");
  socket.on("error", () => {});
  let text = "";
  socket.on("data", (part) => {
    text += part;
  });
  onTestFinished(() => {
    socket.destroy();
    server.close();
  });
  const ask = (from: number, to: number) => {
    const all = Array.from({ length: to - from }, (_, n) => `GET /${from + n} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    socket.write(all.join(""));
  };
  return { begun, socket, ask, bodies: () => text.match(/(?<=<)\d+(?=>)/g)?.map(Number) ?? [] };
};
const answer = ({ url, res }: Begun) => res.end(`<${url.slice(1)}>`);
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);

test("F12: of requests sent ahead four are begun at once; all are answered, in their order", async () => {
  const { begun, ask, bodies } = await serve();
  ask(0, 100);
  await expect.poll(() => begun.length).toBe(4);
  for (let done = 0; done < 100; ) {
    const now = begun.slice(done);
    expect(now.length).toBeLessThanOrEqual(4);
    // The last first: an answer waits for its turn.
    for (const one of now.reverse()) answer(one);
    done += now.length;
    await expect.poll(() => bodies().length).toBe(done);
    if (done < 100) await expect.poll(() => begun.length).toBeGreaterThan(done);
  }
  expect(bodies()).toEqual(upTo(100));
});

test("one that comes when all before it are answered is begun at once", async () => {
  const { begun, ask, bodies } = await serve();
  for (const n of upTo(10)) {
    ask(n, n + 1);
    await expect.poll(() => begun.length).toBe(n + 1);
    answer(begun[n] as Begun);
    await expect.poll(() => bodies().length).toBe(n + 1);
  }
});

test("F12: a connection with more requests waiting than any client sends ahead is cut", async () => {
  const { begun, ask, socket } = await serve();
  ask(0, 1_000);
  await once(socket, "close");
  expect(begun.length).toBe(4);
});
