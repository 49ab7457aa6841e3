import { expect, it } from "vitest";
import { startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { openSocket } from "#test/wire/ws/socket.ts";
import { answer, type Behaviour, startReceiver } from "./receiver.ts";

const SECRET = "T0SECRET0B0SECRET0xoxbSecretOfSlack";

/** The behaviours of a server, some of which repeat the address. */
const BEHAVIOURS: Record<string, Behaviour> = {
  taken: answer(200),
  gone: answer(410),
  failing: answer(500),
  echoing: (socket, { path }) => socket.end(`HTTP/1.1 400 no ${path}\r\nx-path: ${path}\r\ncontent-length: 0\r\n\r\n`),
  redirecting: (socket, { path }) => socket.end(`HTTP/1.1 302 Found\r\nlocation: ${path}\r\ncontent-length: 0\r\n\r\n`),
  garbled: (socket, { path }) => socket.end(`${path}\r\n\r\n`),
  dropping: (socket) => socket.destroy(),
};

/** Everything that a gateway reports about its work, to any reader. */
async function everythingOf(gateway: TestGateway): Promise<string> {
  const rpc = createRpc(gateway.url);
  const said: unknown[] = [gateway.logs];
  const methods = ["system.health", "system.info", "agent.list", "session.list", "usage.stats"] as const;
  for (const method of methods) {
    said.push((await rpc.call(method)).result);
  }
  said.push((await gateway.rest.call("ops.metrics", { key: gateway.rpcToken })).text);
  const { json } = await gateway.console.call("deliveries.list");
  for (const { delivery_id } of json.deliveries as { delivery_id: string }[]) {
    said.push((await gateway.console.call("deliveries.get", { path: { delivery_id } })).json);
  }
  return JSON.stringify(said);
}

it("MUST never show the address of a Slack channel, which is its secret, whatever the result of an announcement", async () => {
  const names = Object.keys(BEHAVIOURS);
  const behave: Behaviour = (socket, request) =>
    (BEHAVIOURS[request.path.split("/").at(-1) ?? ""] as Behaviour)(socket, request);
  await using receiver = await startReceiver([behave]);
  const closed = await startReceiver();
  await closed[Symbol.asyncDispose]();
  const to = (url: string, name: string) => ({ type: "slack", url: `${url}/services/${SECRET}/${name}` }) as const;
  const channels = {
    ...Object.fromEntries(names.map((name) => [name, to(receiver.url, name)])),
    off: to(closed.url, "off"),
  };
  await using gateway = await startGateway({ config: { channels } });
  using socket = await openSocket(gateway);
  await socket.call("rpc.subscribe", { gateway: null, agents: ["main"] });
  for (const channel of Object.keys(channels)) {
    await gateway.hooks.agent({ message: "hello", delivery: "announce", channel });
    await gateway.until(() =>
      gateway.logs.find((line) => /^announcement\./.test(line.event) && line.channel === channel),
    );
  }
  expect(receiver.requests.map(({ path }) => path).sort()).toEqual(
    names.map((name) => `/services/${SECRET}/${name}`).sort(),
  );
  const everything = await everythingOf(gateway);
  for (const reason of ["HTTP 400", "HTTP 302", "announcement.delivered"]) expect(everything).toContain(reason);
  expect(everything).not.toContain(SECRET);
  expect(JSON.stringify(socket.messages)).not.toContain(SECRET);
});
