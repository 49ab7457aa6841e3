import { computed, signal } from "@preact/signals";

const STORED = "agent-gateway.token";
/** The kind of the kept token, so that a reload of the page asks only for what that token may do. */
const STORED_KIND = "agent-gateway.kind";

/** The signed-in token. A REST key of scope `admin` may do less than the console token: it opens REST alone, and no keys. */
export type Identity = { kind: "console" | "admin"; token: string };

export const identity = signal<Identity | undefined>(undefined);
/** Why the sign-in page is shown, where that needs a word. */
export const signInReason = signal<string | undefined>(undefined);
/** A kept token is being looked at. */
export const isChecking = signal(true);

export const isConsole = computed(() => identity.value?.kind === "console");
export const RPC_REASON = "A REST key opens REST alone. Sign in with the console token to use this.";
export const KEYS_REASON = "Keys are made and revoked with the console token alone.";

/** The token in the address's fragment, taken out of it at once, or the one that this tab has kept. */
export const takeToken = (): string | undefined => {
  // A plus sign stands for itself, as in a token of base64.
  const given = new URLSearchParams(location.hash.slice(1).replaceAll("+", "%2B")).get("token");
  if (given !== null) {
    history.replaceState(null, "", location.pathname + location.search);
    sessionStorage.setItem(STORED, given);
    sessionStorage.removeItem(STORED_KIND);
    return given;
  }
  return sessionStorage.getItem(STORED) ?? undefined;
};

/** The kind of the token that this tab has kept, where it is known. */
export const keptKind = (): string | undefined => sessionStorage.getItem(STORED_KIND) ?? undefined;

export const signIn = (next: Identity): void => {
  sessionStorage.setItem(STORED, next.token);
  sessionStorage.setItem(STORED_KIND, next.kind);
  signInReason.value = undefined;
  identity.value = next;
};

/** Forgets the token. The address stays, so that signing in again leads back. */
export const signOut = (reason?: string): void => {
  sessionStorage.removeItem(STORED);
  sessionStorage.removeItem(STORED_KIND);
  signInReason.value = reason;
  identity.value = undefined;
};
