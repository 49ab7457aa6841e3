import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

const [TERMINATE, QUERY, SYNC, READY, ERROR, IDLE] = [..."XQSZEI"].map((letter) => letter.charCodeAt(0));
/** Ends what a session has of its own; what its process knows of the tables and has compiled stays. */
const RESET = "unlisten *; select pg_advisory_unlock_all(); deallocate all; discard temp; discard sequences; reset all";

/** A session of the server's, what it said when it began, and who hears it. */
type Session = { readonly socket: Socket; greeting: Buffer; hear(chunk: Buffer): void };

/**
 * A way to a server that keeps the sessions whose clients took their leave, for the next that asks for the same: a process of the server's
 * takes longer to begin, and to compile its functions, than most tests. A client that breaks off ends its session, as everywhere.
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
      // Else it has taken its leave, of which the server is not told.
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

/** Answers whether it is as good as new. */
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

/** Reads messages out of what comes: each one's type, and the first byte of what is in it. */
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
