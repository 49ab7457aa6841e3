import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

const [TERMINATE, QUERY, SYNC, READY, ERROR, IDLE] = [..."XQSZEI"].map((letter) => letter.charCodeAt(0));
/** Ends the state of a session; its process still has the cached tables and compiled code. */
const RESET = "unlisten *; select pg_advisory_unlock_all(); deallocate all; discard temp; discard sequences; reset all";

/** A session of the server, its start message, and its current client. */
type Session = { readonly socket: Socket; greeting: Buffer; hear(chunk: Buffer): void };

/**
 * A proxy to a server that keeps sessions after their clients have said goodbye, for the next client with the same parameters: starting a server
 * process and compiling its functions takes longer than most tests. A client that disconnects without a goodbye ends its session, as usual.
 */
export async function recyclePostgres(port: number) {
  const idle = new Map<string, Session[]>();
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): Socket => {
    sockets.add(socket.setNoDelay(true));
    return socket.on("error", () => socket.destroy()).once("close", () => sockets.delete(socket));
  };

  const serve = async (client: Socket): Promise<void> => {
    const [startup] = (await once(client, "data")) as [Buffer];
    client.pause();
    const name = startup.toString("latin1");
    const alike = idle.get(name) ?? [];
    idle.set(name, alike);
    const kept = takeOpen(alike);
    const session = kept ?? (await begin(keep(connect(port, "127.0.0.1")), startup));
    const { socket } = session;
    /** The number of messages that the server has not answered yet. */
    let pending = kept ? 0 : 1;
    let isIdle = true;
    let said: Buffer[] = [];

    const readServer = createFrames((type, first) => {
      if (type !== READY) return;
      pending--;
      isIdle = first === IDLE;
    });
    session.hear = (chunk) => {
      readServer(chunk);
      if (session.greeting.length === 0) said.push(chunk);
      if (session.greeting.length === 0 && pending === 0) {
        session.greeting = Buffer.concat(said);
        said = [];
      }
      client.write(chunk);
    };
    const hangUp = () => client.destroy();
    const breakOff = () => socket.destroy();
    socket.once("close", hangUp);
    client.once("close", breakOff);

    const readClient = createFrames((type) => {
      if (type === QUERY || type === SYNC) pending++;
      if (type !== TERMINATE || pending > 0 || !isIdle) return;
      socket.off("close", hangUp);
      client.off("close", breakOff).end();
      void reset(session).then((isFresh) => isFresh && alike.push(session));
    });
    client.on("data", (chunk: Buffer) => {
      readClient(chunk);
      // Otherwise the client has said goodbye, which the server is not told.
      if (!client.writableEnded) socket.write(chunk);
    });
    if (kept) client.write(kept.greeting);
    client.resume();
  };

  const server = createServer((client) => void serve(keep(client)).catch(() => client.destroy()));
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as { port: number }).port,
    async [Symbol.asyncDispose](): Promise<void> {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function takeOpen(sessions: Session[]): Session | undefined {
  for (;;) {
    const session = sessions.pop();
    if (!session?.socket.destroyed) return session;
  }
}

async function begin(socket: Socket, startup: Buffer): Promise<Session> {
  await once(socket, "connect");
  const session: Session = { socket, greeting: Buffer.alloc(0), hear: () => {} };
  socket.on("data", (chunk) => session.hear(chunk)).write(startup);
  return session;
}

/** Returns true if the session is as good as new. */
function reset(session: Session): Promise<boolean> {
  return new Promise((resolve) => {
    const { socket } = session;
    const done = () => resolve(!socket.off("close", done).destroyed);
    socket.once("close", done);
    session.hear = createFrames((type) => {
      if (type === ERROR) socket.destroy();
      if (type === READY) done();
    });
    const text = Buffer.from(`${RESET}\0`);
    const head = Buffer.from([QUERY as number, 0, 0, 0, 0]);
    head.writeUInt32BE(text.length + 4, 1);
    socket.write(Buffer.concat([head, text]));
  });
}

/** Reads messages from the received bytes: the type of each, and the first byte of its content. */
function createFrames(hear: (type: number, first: number | undefined) => void) {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk: Buffer): void => {
    rest = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
    while (rest.length >= 5) {
      const length = rest.readUInt32BE(1) + 1;
      if (rest.length < length) return;
      hear(rest[0] as number, rest[5]);
      rest = rest.subarray(length);
    }
  };
}
