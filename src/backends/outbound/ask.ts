import { isUtf8 } from "node:buffer";
import { Agent, type Dispatcher } from "undici";
import { BackendError } from "#kit/errors.ts";
import { JoinedBytes } from "#kit/joined-bytes.ts";
import { HEAD_BYTES, reachWithin } from "#kit/lookup.ts";
import { paced, READ_AHEAD } from "#kit/paced.ts";
import { connectionError } from "./words.ts";

export const MIB = 1024 * 1024;

/**
 * Connections to an agent or a model, kept for the next turn. The address is the configuration's: no redirect is followed, no variable of
 * the environment sets a proxy, no cookie is kept. How long an answer may take is not decided here: every turn is watched.
 */
export const openAgent = (connectMs: number): Agent =>
  new Agent({
    connect: reachWithin(connectMs),
    maxHeaderSize: HEAD_BYTES,
    headersTimeout: 0,
    bodyTimeout: 0,
  });

export type Answer = Dispatcher.ResponseData;

/** Sends a request. Throws a BackendError. A body that nobody reads has to be destroyed: it holds its sender back. */
export const ask = async (agent: Agent, who: string, request: Dispatcher.RequestOptions): Promise<Answer> => {
  try {
    return await agent.request({ ...request, highWaterMark: READ_AHEAD });
  } catch (error) {
    throw connectionError(who, error);
  }
};

/** Where a request goes, as undici wants it. */
export const targetOf = (address: string | URL): { origin: string; path: string } => {
  const { origin, pathname, search } = new URL(address);
  return { origin, path: pathname + search };
};

/** A body piece by piece, at most `most` bytes of it. Throws a BackendError. */
export async function* piecesOf(who: string, body: AsyncIterable<Buffer>, most: number): AsyncGenerator<Buffer, void> {
  let bytes = 0;
  try {
    for await (const piece of paced(body)) {
      bytes += piece.length;
      if (bytes > most) throw new BackendError(`${who} sent more than ${most / MIB} MiB`);
      yield piece;
    }
  } catch (error) {
    throw connectionError(who, error);
  }
}

/** The text of a whole body. Throws a BackendError. */
export const wholeOf = async (who: string, body: AsyncIterable<Buffer>, most: number): Promise<string> => {
  const joined = new JoinedBytes(most);
  for await (const piece of piecesOf(who, body, most)) joined.add(piece);
  const all = joined.take();
  if (!isUtf8(all)) throw new BackendError(`${who} sent what is no UTF-8`);
  return all.toString();
};
