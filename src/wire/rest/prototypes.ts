import { type IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";

/**
 * The request and response of our servers. Express sets the prototypes of both on every request, which makes every object of
 * the request slow; here they have Express's from the start, so that it finds nothing to change (a quarter of its cost). Plain functions, as a
 * class or Reflect.construct halves the rate again. Express is loaded after the doors are open: until then requests are plain.
 */
export function Req(this: IncomingMessage, ...args: unknown[]): void {
  (IncomingMessage as unknown as (...args: unknown[]) => void).apply(this, args);
}
Req.prototype = IncomingMessage.prototype;
// V8 sizes a new object by the chain of its constructors: without this one, every field after the first few goes to a dictionary.
Object.setPrototypeOf(Req, IncomingMessage);

export function Res(this: ServerResponse, ...args: unknown[]): void {
  (ServerResponse as unknown as (...args: unknown[]) => void).apply(this, args);
}
Res.prototype = ServerResponse.prototype;
Object.setPrototypeOf(Res, ServerResponse);

/** From now on requests and responses are those of this Express application. */
export const adoptPrototypes = (app: { request: object; response: object }): void => {
  Req.prototype = app.request as IncomingMessage;
  Res.prototype = app.response as ServerResponse;
};

type Make<T> = new (from: unknown) => T;
const NO_SOCKET = new Socket();

/** A request that nobody sent, for Express to look at: it knows those of Node's HTTP/1.1 only. */
export const standIn = ({
  method,
  url,
  headers,
}: {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
}): { req: IncomingMessage; res: ServerResponse } => {
  const req = new (Req as unknown as Make<IncomingMessage>)(NO_SOCKET);
  req.method = method;
  req.url = url;
  // A copy: what it makes of them is not the caller's.
  req.headers = { ...headers };
  return { req, res: new (Res as unknown as Make<ServerResponse>)(req) };
};
