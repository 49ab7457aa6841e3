import { headerOf, keyOfText, type Scheme } from "./signature.ts";

const PREFIX = "sha256=";

/** GitHub: `x-hub-signature-256: sha256=<hex>` over the body alone. It signs no time, and not its delivery id. */
export const github: Scheme = {
  encoding: "hex",
  idNamesContent: false,
  claimOf(headers) {
    const signature = headerOf(headers, "x-hub-signature-256");
    if (!signature?.startsWith(PREFIX)) return undefined;
    return { seconds: undefined, prefix: "", signatures: [signature.slice(PREFIX.length)] };
  },
  keysOf: keyOfText,
  senderIdOf: (headers) => headerOf(headers, "x-github-delivery"),
};
