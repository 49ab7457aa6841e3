import type { CallContext } from "#core/call.ts";
import { GatewayError } from "#kit/errors.ts";
import { hashOf } from "#kit/secrets.ts";
import type { Delivery } from "#store/store.ts";
import { isIdempotencyKey } from "#wire/call/idempotency-key.ts";
import type { CallText } from "./call-text.ts";
import type { RpcCaller, RpcExchange, RpcMethodRow } from "./rpc.ts";

/** The context of one call. A class, as a getter in an object literal would give every call a hidden class of its own. */
export class MethodCall implements CallContext {
  readonly exchange: RpcExchange;
  readonly #row: RpcMethodRow;
  readonly #params: object;
  readonly #text: CallText;
  readonly #index: number;

  /** `index` is its place in the batch in `text`; with -1 it is all of the text. */
  constructor(row: RpcMethodRow, exchange: RpcExchange, params: object, text: CallText, index: number) {
    this.exchange = exchange;
    this.#row = row;
    this.#params = params;
    this.#text = text;
    this.#index = index;
  }

  get caller(): RpcCaller {
    return this.exchange.caller;
  }

  get requestId(): string {
    return this.exchange.requestId;
  }

  get signal(): AbortSignal {
    return this.exchange.signal;
  }

  get hops(): number {
    return this.exchange.hops ?? 0;
  }

  get follow(): CallContext["follow"] {
    return this.exchange.follow;
  }

  get idempotency(): CallContext["idempotency"] {
    if (this.#row.idempotent !== true) return undefined;
    const { idempotencyKey: inHeader } = this.exchange;
    const { idempotencyKey: key = inHeader } = this.#params as { idempotencyKey?: string };
    if (key === undefined) return undefined;
    if (inHeader !== undefined) checkHeader(inHeader, key);
    return { key: `rpc\0${this.caller.tokenId}\0${this.#row.name}\0${key}`, hash: hashOfParams(this.#params) };
  }

  delivery(): Delivery {
    const entry = this.#index < 0 ? undefined : this.#text.entry(this.#index);
    return this.exchange.delivery(this.#row.name, entry);
  }
}

const checkHeader = (inHeader: string, key: string): void => {
  if (!isIdempotencyKey(inHeader))
    throw new GatewayError("invalid-params", "The header Idempotency-Key has 1 to 255 printable ASCII characters.");
  if (inHeader !== key)
    throw new GatewayError("invalid-params", "`idempotencyKey` is not the key of the header Idempotency-Key.");
};

/** The same for the same params, in whatever order and with whatever key they came. */
const hashOfParams = (params: object): string => {
  const pairs = Object.entries(params).filter(([name]) => name !== "idempotencyKey");
  pairs.sort(([a], [b]) => (a < b ? -1 : 1));
  return hashOf(JSON.stringify(pairs)).toString("base64url");
};
