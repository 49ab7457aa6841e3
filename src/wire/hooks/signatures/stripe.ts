import { headerOf, keyOfText, type Scheme, secondsOf, textAt } from "./signature.ts";

/** Stripe: `stripe-signature: t=<seconds>,v1=<hex>,v1=<hex>`. A retry may tell how many others it is still pending for. */
export const stripe: Scheme = {
  encoding: "hex",
  idNamesContent: true,
  claimOf(headers) {
    const items = (headerOf(headers, "stripe-signature") ?? "").split(",");
    const valuesOf = (name: string) =>
      items.flatMap((item) => (item.startsWith(`${name}=`) ? [item.slice(name.length + 1)] : []));
    const [timestamp, ...others] = valuesOf("t");
    const seconds = secondsOf(timestamp);
    const signatures = valuesOf("v1");
    if (seconds === undefined || others.length > 0 || signatures.length === 0) return undefined;
    return { seconds, prefix: `${timestamp}.`, signatures };
  },
  keysOf: keyOfText,
  senderIdOf: (_headers, body) => textAt(body, "id"),
};
