import type { IncomingMessage } from "node:http";
import { GatewayError } from "#kit/errors.ts";

/** Refuses a request with two hosts or two Authorization headers: a proxy in front may have gone by the other one. */
export const requireOneOfEach = ({ rawHeaders }: Pick<IncomingMessage, "rawHeaders">): void => {
  let hosts = 0;
  let tokens = 0;
  for (let n = 0; n < rawHeaders.length; n += 2) {
    const { length } = rawHeaders[n] as string;
    if (length === "host".length && isNamed(rawHeaders[n] as string, "host")) hosts++;
    else if (length === "authorization".length && isNamed(rawHeaders[n] as string, "authorization")) tokens++;
  }
  if (hosts > 1) throw new GatewayError("invalid-request", "The request has two hosts. Send one Host.");
  if (tokens > 1) throw new GatewayError("invalid-request", "The request has two Authorization headers. Send one.");
};

const isNamed = (sent: string, name: string): boolean => sent.toLowerCase() === name;

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

type HostRules = { loopback: boolean; tls: boolean };

/** Tells whether a Host header can mean us: on a loopback listener only this machine's names can, and those that the configuration allows. */
export const createHostCheck = (allowedOrigins: readonly string[], { loopback }: Pick<HostRules, "loopback">) => {
  const hosts = new Set(allowedOrigins.map((origin) => origin.toLowerCase().replace(/^https?:\/\//, "")));
  return (host: string): boolean => !loopback || LOOPBACK.test(host) || hosts.has(host.toLowerCase());
};

/**
 * Keeps other sites' pages out. An Origin must be our own or one that the configuration allows; on a loopback listener the Host must
 * be this machine's too, as a name that somebody lets point here would make his page our own.
 */
export const createHostGuard = (allowedOrigins: readonly string[], { loopback, tls }: HostRules) => {
  const origins = new Set(allowedOrigins.map((origin) => origin.toLowerCase()));
  const isOwn = createHostCheck(allowedOrigins, { loopback });
  const scheme = tls ? "https" : "http";
  let lastGood = "";
  return ({ headers: { host = "", origin } }: IncomingMessage): void => {
    if (loopback && host !== lastGood) {
      if (!isOwn(host)) {
        throw new GatewayError(
          "origin-not-allowed",
          "The Host is not this machine's. Name its origin in gateway.allowedOrigins.",
        );
      }
      lastGood = host;
    }
    if (origin === undefined) return;
    const given = origin.toLowerCase();
    if (given === `${scheme}://${host.toLowerCase()}` || origins.has(given)) return;
    throw new GatewayError("origin-not-allowed", "The page's origin is not in gateway.allowedOrigins.");
  };
};

/**
 * Tells whether a request comes from a page of another origin that may call us. Answers are made readable to such a page; our own needs
 * nothing, and nobody else gets anything.
 */
export const createPageCheck = (allowedOrigins: readonly string[], { tls }: Pick<HostRules, "tls">) => {
  const origins = new Set(allowedOrigins.map((origin) => origin.toLowerCase()));
  const scheme = tls ? "https" : "http";
  return ({ headers: { host = "", origin = "" } }: IncomingMessage): boolean => {
    const given = origin.toLowerCase();
    return origins.has(given) && given !== `${scheme}://${host.toLowerCase()}`;
  };
};
