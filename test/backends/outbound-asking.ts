import type { AnswerHeaders } from "#backends/outbound/answer-head.ts";
import { Client } from "#backends/outbound/client.ts";
import { systemClock } from "#kit/clock.ts";

type Told = { status: number; headers: AnswerHeaders; body: string };

/** The client of the backends, as they open it. */
export const open = () => new Client(2_000, systemClock);
/** One request, and the whole answer to it. */
export const ask = (client: Client, origin: string, body = "{}", headers: Record<string, string> = {}): Promise<Told> =>
  new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let head: Pick<Told, "status" | "headers"> | undefined;
    client.dispatch(
      { origin, path: "/turns", headers, body },
      {
        onRequestStart() {},
        onResponseStart(_, status, headers) {
          head = { status, headers };
        },
        onResponseData: (_, bytes, from, to) => void parts.push(Buffer.from(bytes.subarray(from, to))),
        onResponseEnd: () => resolve({ ...(head as Told), body: Buffer.concat(parts).toString("latin1") }),
        onResponseError: (_, error) => reject(error),
      },
    );
  });

export const OK = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n";
export const CHUNKED = `${OK}transfer-encoding: chunked\r\n\r\n`;
