/** This stands in place of a secret. */
export const HIDDEN = "[hidden]";

/** Headers that are, or hold, a secret or a proof of one, by how they are called: `authorization`, `x-gitlab-token`, `stripe-signature` … */
const SECRET =
  /authori[sz]ation|authenticat|cookie|signature|token|secret|passw|hmac|jwt|assertion|credential|client-cert|(?:api|auth|access|private|subscription|functions)[-_]?key|^sec-websocket-protocol$/;

/** True if a header is never recorded, matched, or filled in. `name` is in small letters. */
export function isSecretHeader(name: string): boolean {
  return SECRET.test(name);
}

const CREDENTIALS = /\b(bearer|basic)(?:[ \t:=]|%20|\+)+[^\s,;"']+/gi;
/** As the gateway writes the keys that it makes. */
const MINTED = /\bgw_[\w-]{20,}/g;

/** A text without what any header may hold of a secret: `Bearer …`, `Basic …`, a key of REST. */
export function withoutCredentials(text: string): string {
  return text.replace(CREDENTIALS, `$1 ${HIDDEN}`).replace(MINTED, HIDDEN);
}
