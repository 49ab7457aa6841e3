import type { IncomingMessage } from "node:http";
import { GatewayError } from "#kit/errors.ts";

/** Refuses a body that is not announced as JSON in UTF-8, or that is compressed. */
export const requireJson = ({ headers }: Pick<IncomingMessage, "headers">): void => {
  if (!isJson(headers["content-type"]) || !isPlain(headers["content-encoding"])) {
    throw new GatewayError("unsupported-media-type", "Send Content-Type: application/json, not compressed.");
  }
};

const isJson = (type: string | undefined): boolean => {
  if (type === "application/json") return true;
  if (type === undefined) return false;
  const [media = "", ...parameters] = type
    .toLowerCase()
    .split(";")
    .map((part) => part.trim());
  return media === "application/json" && parameters.every((part) => part === "" || /^charset="?utf-8"?$/.test(part));
};

const isPlain = (encoding: string | undefined): boolean =>
  encoding === undefined || encoding.toLowerCase() === "identity";
