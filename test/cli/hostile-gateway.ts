import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocketServer } from "ws";
import { startMock } from "#cli/mock.ts";

/** The answer of a stand-in: the contract's example, a refusal, or something that is not JSON. */
export type Mode = "answers" | "refuses" | "babbles";

export type Attack = {
  mode: Mode;
  /** Parts of every answer, one after another. */
  texts: readonly string[];
  /** The original string is in front of the text. */
  keepsFirst: boolean;
};

/** A gateway that answers each call with the contract's example, in which hostile text replaces every string. */
export async function startHostileGateway(onFinished: (end: () => void) => void) {
  const mock = await startMock("127.0.0.1", 0);
  let attack: Attack = { mode: "answers", texts: ["harmless"], keepsFirst: true };
  let next = 0;
  /** The latest answer in JSON. */
  let answered: unknown;

  const hostile = (): string => attack.texts[next++ % attack.texts.length] ?? "";
  const poisoned = (value: unknown): unknown => {
    if (typeof value === "string") return attack.keepsFirst ? value + hostile() : hostile();
    if (Array.isArray(value)) return value.map(poisoned);
    if (typeof value !== "object" || value === null) return value;
    const members = Object.entries(value).map(([name, member]) => [
      name,
      name === "jsonrpc" ? member : poisoned(member),
    ]);
    return Object.fromEntries([...members, [hostile(), hostile()]]);
  };
  const send = (res: ServerResponse, status: number, type: string, text: string): void => {
    // A header has bytes: none of C0, and all of C1.
    res.writeHead(status, { "content-type": type, "x-request-id": "req\u009b31m\u009d0;x", connection: "close" });
    res.end(text);
  };
  const sendJson = (res: ServerResponse, status: number, body: unknown, type = "application/json"): void => {
    answered = body;
    send(res, status, type, JSON.stringify(body));
  };

  const server = createServer(async (req, res) => {
    const body = (await req.setEncoding("utf8").toArray()).join("");
    if (attack.mode === "babbles") return send(res, 200, "application/json", hostile());
    const isRpc = req.url === "/rpc";
    if (attack.mode === "refuses")
      return isRpc
        ? sendJson(res, 200, {
            jsonrpc: "2.0",
            id: JSON.parse(body).id,
            error: {
              code: -32000,
              message: hostile(),
              data: { name: hostile(), detail: hostile(), turnId: hostile() },
            },
          })
        : sendJson(
            res,
            409,
            { type: `#${hostile()}`, title: hostile(), detail: hostile(), request_id: hostile(), turn_id: hostile() },
            "application/problem+json",
          );
    const { accept = "*/*" } = req.headers;
    const answer = await fetch(mock + req.url, {
      method: req.method ?? "GET",
      headers: { "content-type": "application/json", accept },
      ...(body === "" ? {} : { body }),
    });
    const [type, text] = [answer.headers.get("content-type") ?? "", await answer.text()];
    if (type.startsWith("text/event-stream"))
      return send(
        res,
        answer.status,
        type,
        text.replace(/^data: (.*)$/gm, (_, data) => `data: ${JSON.stringify(poisoned(JSON.parse(data)))}`),
      );
    if (!/json/.test(type)) return send(res, answer.status, type, text + hostile());
    const example = JSON.parse(text);
    sendJson(
      res,
      answer.status,
      isRpc ? { ...(poisoned(example) as object), id: example.id } : poisoned(example),
      type,
    );
  });

  const sockets = new WebSocketServer({ server, handleProtocols: () => "agent-gateway.v1" });
  sockets.on("connection", (socket) =>
    socket.on("message", (message) => {
      const { id } = JSON.parse(String(message));
      socket.send(JSON.stringify({ jsonrpc: "2.0", id, result: poisoned({ subscribed: {} }) }));
      for (const method of ["event.queued", "delivery.recorded"])
        socket.send(JSON.stringify({ jsonrpc: "2.0", method, params: poisoned(PUSHED) }));
      setTimeout(() => socket.close(4401, [...hostile()].slice(0, 20).join("")), 5);
    }),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onFinished(() => {
    sockets.close();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    set: (given: Attack): void => {
      attack = given;
      next = 0;
    },
    answered: () => answered,
  };
}

const PUSHED = {
  at: "2026-11-21T08:00:00Z",
  eventId: "evt_1",
  agentName: "main",
  reason: "because",
  delivery: { deliveryId: "dlv_1", at: "2026-11-21T08:00:00Z" },
};
