import type { OutgoingHttpHeaders } from "node:http";
import { Http2ServerRequest, Http2ServerResponse, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";

// Error codes of RFC 9113.
const NO_ERROR = 0;
const INTERNAL_ERROR = 2;

// Both classes override accessors of Node's own, which Node declares as fields. Tried with Node 20.20. `h2-messages.test.ts` fails if a version
// of Node does not use the accessors.

/** A request of HTTP/2, with the head that it would have over HTTP/1.1. */
export class Http2Request extends Http2ServerRequest {
  /** True if the stream ended with the head. */
  readonly isWhole: boolean;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, raw: readonly string[], isWhole: boolean) {
    const host = (headers[":authority"] as string | undefined) ?? headers.host;
    headers.host = host;
    // Body parsers check the headers for a body, but only HTTP/1.1 always sends such a header.
    if (!isWhole && headers["content-length"] === undefined) headers["transfer-encoding"] = "chunked";
    super(stream, headers, {}, rawHeadersOf(raw, host));
    this.isWhole = isWhole;
  }

  /** True if the whole body was received. Node's own value is also true for an aborted body. */
  // @ts-expect-error The types of Node have a field.
  override get complete(): boolean {
    return this.isWhole || (this.readableEnded && !this.stream.aborted);
  }

  /** Reports to the reader of the body that the rest will not be received. */
  fail(error: Error): void {
    if (this.listenerCount("error") > 0) this.emit("error", error);
  }
}

function rawHeadersOf(raw: readonly string[], host: string | undefined): string[] {
  const named = host === undefined ? [] : ["host", host];
  let isRepeated = false;
  for (let n = 0; n < raw.length; n += 2) {
    const [name, value] = [raw[n] as string, raw[n + 1] as string];
    if (name[0] === ":") continue;
    // The host is already in the list, from `:authority` or the first `host`. A different `host` is a second one.
    if (name === "host" && !isRepeated && value.toLowerCase() === host?.toLowerCase()) isRepeated = true;
    else named.push(name, value);
  }
  return named;
}

/** The reply to an HTTP/2 request, with the members of ServerResponse that Node's own class lacks. */
export class Http2Response extends Http2ServerResponse {
  /** Has no effect: over HTTP/2 a frame announces the end of a connection. */
  shouldKeepAlive = true;

  // @ts-expect-error The types of Node have a field.
  override get destroyed(): boolean {
    return this.stream.destroyed;
  }

  // @ts-expect-error The types of Node have a field.
  override get writableNeedDrain(): boolean {
    return this.stream.writableNeedDrain;
  }

  /** Node releases a stream that was closed well before it reports the last write. */
  // @ts-expect-error The types of Node have a field.
  override get writableFinished(): boolean {
    const { writableFinished, closed, rstCode } = this.stream;
    return this.writableEnded && (writableFinished || (closed && rstCode === NO_ERROR));
  }

  /** Does not wait for trailers, unlike Node's own: no door sends trailers, and each reply would have one more frame. */
  override writeHead(status: number, headers?: OutgoingHttpHeaders | string | readonly string[]): this {
    this.statusCode = status;
    if (this.stream.closed || this.stream.destroyed) return this;
    this.stream.respond({ ":status": status, ...this.getHeaders(), ...(headers as OutgoingHttpHeaders) });
    return this;
  }

  override end(part?: unknown): this {
    if (!(this.req as Http2Request).complete) this.stream.once("finish", refuseRest);
    return this.req.method === "HEAD" ? super.end() : super.end(part as string);
  }

  /** Aborts the reply, so that the client does not accept it as complete. */
  override destroy(): this {
    this.stream.close(INTERNAL_ERROR);
    return this;
  }
}

/** The rest of the request is not needed. The end of the reply may be a separate frame after its last part. */
function refuseRest(this: ServerHttp2Stream): void {
  setImmediate(() => this.readableEnded || this.close(NO_ERROR));
}
