import type { Caller } from "#core/call.ts";
import { createSecretIndex } from "#kit/secrets.ts";
import { createNetworks } from "#wire/call/address.ts";
import { type Scheme, type SignatureType, schemes } from "./signatures.ts";

export type Sender = {
  caller: Extract<Caller, { surface: "hooks" }>;
  /** Its rate is counted by this, and its idempotency keys are its own. Tokens of one name are one sender that changes its token. */
  rateKey: string;
  owner: string;
  /** The authentication as the timeline shows it, in JSON. */
  detail: string;
};

export type Signing = {
  type: SignatureType;
  scheme: Scheme;
  keys: readonly Buffer[];
  /** The address that the sender signs; empty if its signatures are not over an address. */
  url: string;
  /** The sender at an index signs with the key at the same index. */
  senders: readonly Sender[];
};

export type HooksAccessSettings = {
  token: readonly { name: string; hash: string; since: string | undefined }[];
  /** Undefined lets any address in. */
  allowedIps: readonly string[] | undefined;
  mappings: Readonly<Record<string, { verify: VerifySettings | undefined }>>;
};
type VerifySettings = { type: SignatureType; secret: readonly string[]; url: string | undefined };

export type HooksAccess = {
  allows: (address: string) => boolean;
  /** True if a shared token is configured. Without one, only a signature authenticates a sender. */
  hasToken: boolean;
  identify: (hash: Buffer) => Sender | undefined;
  hasMapping: (name: string) => boolean;
  mappingNames: () => string[];
  /** The signing of a mapping's requests; undefined where the shared token counts. */
  signingOf: (name: string) => Signing | undefined;
};

/** The senders of webhooks that one configuration lets in. A reload makes another and puts it in this one's place. */
export function createHooksAccess({ token, allowedIps, mappings }: HooksAccessSettings): HooksAccess {
  const signings = new Map(
    Object.entries(mappings).map(([name, { verify }]) => [name, verify && createSigning(name, verify)]),
  );
  return {
    allows: allowedIps ? createNetworks(allowedIps) : () => true,
    hasToken: token.length > 0,
    identify: createSecretIndex(
      token.map(({ name, hash, since }, index) => {
        const which = token.length > 1 ? { name, token: index + 1, since } : { name, since };
        const sender = senderOf(name, tokenRateKey(hash), `token\0${name}`, which);
        return { hash: Buffer.from(hash, "hex"), value: sender };
      }),
    ),
    hasMapping: (name) => signings.has(name),
    mappingNames: () => [...signings.keys()],
    signingOf: (name) => signings.get(name),
  };
}

/** The key that counts the requests of a token's senders, or of the senders that sign for a mapping. */
export function tokenRateKey(hash: string): string {
  return `token\0${hash}`;
}
export function mappingRateKey(name: string): string {
  return `mapping\0${name}`;
}

function createSigning(name: string, { type, secret: secrets, url = "" }: VerifySettings): Signing {
  const scheme = schemes[type];
  const keyed = secrets.flatMap((secret, index) => {
    const which = secrets.length > 1 ? { type, secret: index + 1 } : { type };
    const sender = senderOf(name, mappingRateKey(name), `mapping\0${name}`, which);
    return scheme.keysOf(secret).map((key) => ({ key, sender }));
  });
  return { type, scheme, url, keys: keyed.map(({ key }) => key), senders: keyed.map(({ sender }) => sender) };
}

function senderOf(name: string, rateKey: string, owner: string, detail: object): Sender {
  return {
    caller: { surface: "hooks", name },
    rateKey,
    owner,
    detail: JSON.stringify(detail),
  };
}
