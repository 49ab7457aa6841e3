import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import { turnId } from "./answers.ts";

export type Message = { id?: string; method: string; params: Record<string, unknown> };

/** A WebSocket server that stores the received messages and answers as the test specifies. */
export async function serveSocket(answer: (message: Message, socket: WebSocket) => unknown = () => ({})) {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", handleProtocols: ([first]) => first ?? false });
  await new Promise((listening) => server.once("listening", listening));
  const seen: Message[] = [];
  const protocols: string[] = [];
  const sockets: WebSocket[] = [];
  server.on("connection", (socket, req) => {
    sockets.push(socket);
    protocols.push(String(req.headers["sec-websocket-protocol"]));
    socket.on("message", (data) => {
      const frame = JSON.parse(String(data)) as Message | Message[];
      const messages = Array.isArray(frame) ? frame : [frame];
      seen.push(...messages);
      const answers = messages.flatMap((message) => {
        const result = answer(message, socket);
        if (message.id === undefined || result === undefined) return [];
        return { jsonrpc: "2.0", id: message.id, ...(isError(result) ? result : { result }) };
      });
      if (answers.length > 0) socket.send(JSON.stringify(Array.isArray(frame) ? answers.reverse() : answers[0]));
    });
  });
  const push = (method: string, params: object) =>
    sockets.at(-1)?.send(JSON.stringify({ jsonrpc: "2.0", method, params }));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    sockets,
    protocols,
    queued: (seq: number, sessionId = "s1") =>
      push("turn.queued", { seq, cursor: `c${seq}`, sessionId, turnId, at: "" }),
    async [Symbol.asyncDispose]() {
      for (const socket of server.clients) socket.terminate();
      await new Promise((closed) => server.close(closed));
    },
  };
}

function isError(value: unknown): value is { error: object } {
  return typeof value === "object" && value !== null && "error" in value;
}
