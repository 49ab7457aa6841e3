import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { answer, type Behaviour, hang, type Receiver, startReceiver } from "./receiver.ts";

const SECRET = `whsec_${Buffer.from("the secret of an endpoint").toString("base64")}`;

type Endpoint = NonNullable<NonNullable<SomeConfig["notify"]>[string]>;

function endpointAt({ url }: Pick<Receiver, "url">, more: Partial<Endpoint> = {}): Endpoint {
  return { url: `${url}/in`, secret: SECRET, events: ["turn.*"], ...more };
}

/** A gateway whose endpoint `ops` is a server with this behaviour. */
async function startWith(behave: readonly Behaviour[], more: Partial<Endpoint> = {}, config: SomeConfig = {}) {
  const receiver = await startReceiver(behave);
  const gateway = await startGateway({ config: { notify: { ops: endpointAt(receiver, more) }, ...config } });
  return {
    ...gateway,
    receiver,
    /** The verified event of a request. */
    eventOf: (index: number) => {
      const { body, headers } = receiver.requests[index] ?? {};
      return new Webhook(SECRET).verify(String(body), headers ?? {}) as { type: string; data: Record<string, unknown> };
    },
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]();
      await receiver[Symbol.asyncDispose]();
    },
  };
}

async function chat({ rest }: Awaited<ReturnType<typeof startWith>>, session: string, headers = {}): Promise<string> {
  const body = { agent: "main", session_id: `chat:${session}`, message: "A secret plan." };
  const { json } = await rest.call("chat.send", { body, headers });
  return String(json.turn_id);
}

describe("an endpoint of `notify`", () => {
  it("gets the end of a turn, signed as Standard Webhooks, without the reply", async () => {
    await using gateway = await startWith([answer(204)]);
    const turnId = await chat(gateway, "a", { "x-gateway-hops": "1" });
    await gateway.logged("notification.delivered", { endpoint: "ops" });
    const [request] = gateway.receiver.requests;
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    expect(gateway.eventOf(0)).toEqual({
      type: "turn.completed",
      timestamp: time,
      data: {
        turnId,
        sessionId: "chat:a",
        agent: "main",
        status: "completed",
        surface: "rest",
        caller: "tests",
        model: null,
        usage: expect.anything(),
        error: null,
        deliveryId: expect.stringMatching(/^dlv_/),
        createdAt: time,
        endedAt: time,
        hops: 1,
      },
    });
    expect(request?.headers).toMatchObject({
      "webhook-id": `ntf_${turnId.slice("turn_".length)}`,
      "content-type": "application/json",
      "x-gateway-hops": "2",
    });
    expect(String(request?.body)).not.toContain("secret plan");
  });

  it("gets the reply with `content: reply`", async () => {
    await using gateway = await startWith([answer(200)], { content: "reply" });
    await chat(gateway, "a");
    await gateway.logged("notification.delivered");
    expect(gateway.eventOf(0).data.reply).toBe("A secret plan.");
  });

  it("gets only its events and agents, and a reload changes them", async () => {
    const agents = { main: { backend: "echo" }, broken: { backend: "echo", echo: { fail: "on purpose" } } } as const;
    const config = { agents, gateway: { defaultAgent: "main" } };
    await using gateway = await startWith([answer(200)], { events: ["turn.failed"], agents: ["broken"] }, config);
    await chat(gateway, "a");
    await gateway.rest.call("chat.send", { body: { agent: "broken", session_id: "chat:b", message: "x" } });
    await gateway.logged("notification.delivered");
    expect(gateway.receiver.requests).toHaveLength(1);
    const error = { name: "turn-failed", detail: "on purpose" };
    expect(gateway.eventOf(0)).toMatchObject({
      type: "turn.failed",
      data: { status: "failed", agent: "broken", error },
    });
    await gateway.reload({ ...config, notify: { team: endpointAt(gateway.receiver, { events: ["*"] }) } });
    await chat(gateway, "c");
    await gateway.logged("notification.delivered", { endpoint: "team" });
    expect(gateway.eventOf(1)).toMatchObject({ type: "turn.completed", data: { sessionId: "chat:c" } });
    await gateway.reload(config);
    await chat(gateway, "d");
    expect(gateway.receiver.requests).toHaveLength(2);
  });

  it("MUST not fail a turn or delay another endpoint, and health, metrics and log show its failure without the secret", async () => {
    await using quiet = await startReceiver([hang]);
    await using gateway = await startWith([answer(410)]);
    const notify = { ops: endpointAt(gateway.receiver), quiet: endpointAt(quiet) };
    await gateway.reload({ notify });
    const turnId = await chat(gateway, "a");
    await gateway.logged("notify.stopped", { endpoint: "ops" });
    const { json } = await gateway.console.call("turns.get", { path: { turn_id: turnId } });
    expect(json).toMatchObject({ status: "completed" });
    const { result: health } = await createRpc(gateway.url).call("system.health");
    expect(health.parts.find(({ name }) => name === "notify.ops")).toEqual({
      name: "notify.ops",
      status: "degraded",
      detail: "Stopped: the receiver answered 410 Gone. 1 notification is waiting.",
    });
    const { text: metrics } = await gateway.rest.call("ops.metrics", { key: gateway.rpcToken });
    expect(metrics).toMatch(/^gateway_notifications_total\{endpoint="ops",outcome="stopped"\} 1$/m);
    expect(metrics).toMatch(/^gateway_notifications_waiting\{endpoint="quiet"\} 1$/m);
    expect(metrics).toMatch(/^gateway_endpoint_stopped\{endpoint="ops"\} 1$/m);
    expect(metrics).toMatch(/^gateway_endpoint_stopped\{endpoint="quiet"\} 0$/m);
    expect(JSON.stringify([gateway.logs, health, metrics])).not.toContain(SECRET);
  });
});
