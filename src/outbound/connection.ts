import type { Socket } from "node:net";
import { buildConnector } from "undici";

/** The bytes that are read from one connection in one tick of the event loop: they may contain hundreds of events. */
export const TURN_BYTES = 16 * 1024;

/** The connection whose bytes are parsed: undici parses all that it has read before it reads from another connection. */
let parsed: Connection | undefined;

/** The connection that the current call of a dispatch handler comes from. */
export function parsedConnection(): Connection | undefined {
  return parsed;
}

/**
 * Limits what undici reads from a connection: a part in each tick of the event loop, and nothing while the connection is held. The other side
 * then has to wait.
 * @NOTE undici's own `pause()` stops its parser, and if the connection ends then, undici 7 throws where nothing catches it.
 */
export class Connection {
  readonly #socket: Socket;
  #isHeld = false;
  #isResting = false;
  /** True if it ended with an error: an answer that ends with its connection is not complete then. */
  isBroken = false;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.once("error", () => {
      this.isBroken = true;
    });
    const read = socket.read.bind(socket);
    socket.read = (size?: number) => {
      // Node itself calls it with a size, to start receiving.
      if (size !== undefined) return read(size);
      if (this.#isHeld || this.#isResting) return null;
      parsed = this;
      const bytes = read(Math.min(socket.readableLength, TURN_BYTES) || undefined);
      if (bytes?.length >= TURN_BYTES) this.#rest();
      return bytes;
    };
  }

  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#rest();
  }

  /** Continues reading in the next tick of the event loop. */
  #rest(): void {
    if (this.#isResting) return;
    this.#isResting = true;
    setImmediate(() => {
      this.#isResting = false;
      if (!this.#isHeld && !this.#socket.destroyed) this.#socket.emit("readable");
    });
  }
}

/** Opens connections as undici does, and limits what is read from them. */
export function createConnector(options: buildConnector.BuildOptions): buildConnector.connector {
  const connect = buildConnector(options);
  return (target, callback) =>
    connect(target, (...result) => {
      const [, socket] = result;
      if (socket) new Connection(socket);
      callback(...result);
    });
}
