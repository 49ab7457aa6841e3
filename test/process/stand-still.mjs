// Loaded before the gateway: its door of REST opens a while later, and meanwhile it is asked how ready it is, and stands still.
import { get } from "node:http";
import { Server } from "node:net";
import "./late-contract.mjs";

const STALL_MS = 1_200;
/** Who asks first begins the watch over the loop, which has a beat of 40 ms. */
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
