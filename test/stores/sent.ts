import pg from "pg";
import { afterAll } from "vitest";

type Sent = { readonly client: pg.Client; readonly text: string };

/** The texts that the stores of a test file send to PostgreSQL, from now on, each with its connection. */
export function recordSent(): Sent[] {
  const sent: Sent[] = [];
  const send = pg.Client.prototype.query as (...args: unknown[]) => unknown;
  function recorded(this: pg.Client, ...args: unknown[]): unknown {
    if (typeof args[0] === "string") sent.push({ client: this, text: args[0] });
    return send.apply(this, args);
  }
  pg.Client.prototype.query = recorded as typeof pg.Client.prototype.query;
  afterAll(() => {
    pg.Client.prototype.query = send as typeof pg.Client.prototype.query;
  });
  return sent;
}
