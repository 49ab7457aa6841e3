import pg from "pg";
import { afterAll } from "vitest";

/** The texts that the stores of a test file send to PostgreSQL, from now on. */
export function recordSent(): string[] {
  const sent: string[] = [];
  const send = pg.Client.prototype.query as (...args: unknown[]) => unknown;
  function recorded(this: pg.Client, ...args: unknown[]): unknown {
    if (typeof args[0] === "string") sent.push(args[0]);
    return send.apply(this, args);
  }
  pg.Client.prototype.query = recorded as typeof pg.Client.prototype.query;
  afterAll(() => {
    pg.Client.prototype.query = send as typeof pg.Client.prototype.query;
  });
  return sent;
}
