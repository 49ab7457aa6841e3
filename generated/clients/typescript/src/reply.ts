// Copied by "npm run generate" from scripts/generate/runtime/typescript/reply.ts; do not edit.
import { otherAnswer } from "./error.ts";

/** A reply with the request's id, which is also in the gateway's log and flight recorder. */
export type Received<Data> = Data extends object ? Data & { readonly requestId: string } : Data;

export interface Exchange<Data> {
  data: Data;
  response: Response;
  requestId: string;
}

/** A call that was made. Await it for the reply. */
export class Reply<Data> implements Promise<Received<Data>> {
  readonly [Symbol.toStringTag] = "Reply";
  readonly #exchange: Promise<Exchange<Data>>;

  constructor(exchange: Promise<Exchange<Data>>) {
    this.#exchange = exchange;
  }

  /** The reply with its HTTP response. */
  withResponse(): Promise<Exchange<Received<Data>>> {
    return this.#exchange.then((exchange) => ({ ...exchange, data: received(exchange) }));
  }

  // biome-ignore lint/suspicious/noThenProperty: it is a promise.
  then<Ok = Received<Data>, Failed = never>(
    onOk?: ((data: Received<Data>) => Ok | PromiseLike<Ok>) | null,
    onFailed?: ((error: unknown) => Failed | PromiseLike<Failed>) | null,
  ): Promise<Ok | Failed> {
    return this.#exchange.then(received).then(onOk, onFailed);
  }

  catch<Failed = never>(
    onFailed?: ((error: unknown) => Failed | PromiseLike<Failed>) | null,
  ): Promise<Received<Data> | Failed> {
    return this.then(undefined, onFailed);
  }

  finally(onEnd?: (() => void) | null): Promise<Received<Data>> {
    return this.#exchange.then(received).finally(onEnd);
  }
}

/** A page of a list. Await it for only that page, or read all pages with `for await`. */
export class Page<Data, Item> extends Reply<Data> implements AsyncIterable<Item> {
  readonly #itemsOf: (data: Data) => readonly Item[];
  readonly #next: (data: Data) => Page<Data, Item> | undefined;

  constructor(
    exchange: Promise<Exchange<Data>>,
    itemsOf: (data: Data) => readonly Item[],
    next: (data: Data) => Page<Data, Item> | undefined,
  ) {
    super(exchange);
    this.#itemsOf = itemsOf;
    this.#next = next;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item> {
    for (let page: Page<Data, Item> | undefined = this; page; ) {
      const data: Data = await page;
      yield* page.#itemsOf(data);
      page = page.#next(data);
    }
  }
}

type Query = Record<string, unknown>;

/** A page and the pages after it. A repeated cursor is an error, because the list would not end. */
export function pagesOf(
  query: Query,
  list: { items: string; next: string; operation: string },
  exchange: (query: Query) => Promise<Exchange<Query>>,
  seen: readonly unknown[] = [query.cursor],
): Page<Query, unknown> {
  return new Page<Query, unknown>(
    exchange(query),
    (data) => data[list.items] as unknown[],
    (data) => {
      const cursor = data[list.next];
      if (cursor == null) return undefined;
      if (typeof cursor !== "string")
        throw otherAnswer(list.operation, `The \`${list.next}\` of the answer is not text.`);
      if (seen.includes(cursor)) throw otherAnswer(list.operation, "The list does not end: it repeats a cursor.");
      return pagesOf({ ...query, cursor }, list, exchange, [...seen, cursor]);
    },
  );
}

/** The id is not among the fields of the reply, so that a copy or `JSON.stringify` has only the reply. */
function received<Data>({ data, requestId }: Exchange<Data>): Received<Data> {
  if (typeof data === "object" && data !== null && !("requestId" in data))
    Object.defineProperty(data, "requestId", { value: requestId, configurable: true });
  return data as Received<Data>;
}
