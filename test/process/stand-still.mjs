// Loaded before the gateway: its REST listener opens later, and meanwhile its readiness is read and it is blocked.
import { get } from "node:http";
import { Server } from "node:net";
import "./late-contract.mjs";

const STALL_MS = 1_200;
/** The first reading starts the measurement of the loop, which has a beat of 40 ms. */
const WATCHED_MS = 50;

const { listen } = Server.prototype;
Server.prototype.listen = function (...of) {
  this.once("listening", () => {
    get({ port: this.address().port, path: "/readyz" }, async (answer) => {
      const { parts } = JSON.parse((await answer.toArray()).join(""));
      setTimeout(() => {
        const end = performance.now() + STALL_MS;
        while (performance.now() < end);
        console.error(parts.rest.ok ? "it was open already" : "it stood still");
      }, WATCHED_MS);
    });
  });
  return listen.apply(this, of);
};
