import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { expect, test } from "vitest";
import { takeOwnListener } from "#wire/http/own-listener.ts";

test("Node's servers add one listener for each event of a new connection", () => {
  const [http, https] = [createServer(), createTlsServer()];
  expect(takeOwnListener(http, "connection")).toBeTypeOf("function");
  expect(takeOwnListener(https, "connection")).toBeTypeOf("function");
  expect(takeOwnListener(https, "secureConnection")).toBeTypeOf("function");
  expect(http.listenerCount("connection") + https.listenerCount("connection")).toBe(0);
});

test("a server with another number of listeners is refused", () => {
  const http = createServer().on("connection", () => {});
  expect(() => takeOwnListener(http, "connection")).toThrow("has 2 listeners for `connection`");
  http.removeAllListeners("connection");
  expect(() => takeOwnListener(http, "connection")).toThrow("has 0 listeners for `connection`");
});
