import { computed, signal } from "@preact/signals";

const STORED = "agent-gateway.token";
/** The kind of the stored token, so that a reload of the page asks only for what that token may do. */
const STORED_KIND = "agent-gateway.kind";
const STORED_NAME = "agent-gateway.name";

/** The signed-in token. A REST key of scope `admin` may do less than the console token: it opens REST alone, and no keys. */
export type Identity = { kind: "console" | "admin"; token: string; name?: string | undefined };

export const identity = signal<Identity | undefined>(undefined);
/** The identity of a link that the tab's user has not accepted yet. */
export const offered = signal<Identity | undefined>(undefined);
/** Why the sign-in page is shown, where that needs a word. */
export const signInReason = signal<string | undefined>(undefined);
/** A stored token or a link is being checked. */
export const isChecking = signal(true);

export const isConsole = computed(() => identity.value?.kind === "console");
export const RPC_REASON = "A REST key opens REST alone. Sign in with the console token to use this.";
export const KEYS_REASON = "Only the console token can create and revoke keys.";

/** An identity in words. */
export function nameOf({ kind, name }: Identity): string {
  return kind === "console" ? "the console token" : name === undefined ? "a REST key" : `the REST key ${name}`;
}

/** The code or token in the address's fragment. It is removed from the address at once. */
export function takeLink(): { code: string } | { token: true } | undefined {
  const given = new URLSearchParams(location.hash.slice(1));
  const code = given.get("code");
  if (code === null && !given.has("token")) return undefined;
  history.replaceState(null, "", location.pathname + location.search);
  return code === null ? { token: true } : { code };
}

export function isLink(): boolean {
  return /^#(?:code|token)=/.test(location.hash);
}

/** The token that this tab has stored. */
export function storedToken(): string | undefined {
  return sessionStorage.getItem(STORED) ?? undefined;
}
export function storedKind(): string | undefined {
  return sessionStorage.getItem(STORED_KIND) ?? undefined;
}
export function storedName(): string | undefined {
  return sessionStorage.getItem(STORED_NAME) ?? undefined;
}

export function signIn(next: Identity): void {
  sessionStorage.setItem(STORED, next.token);
  sessionStorage.setItem(STORED_KIND, next.kind);
  if (next.name === undefined) sessionStorage.removeItem(STORED_NAME);
  else sessionStorage.setItem(STORED_NAME, next.name);
  signInReason.value = undefined;
  offered.value = undefined;
  identity.value = next;
}

/** Forgets the token. The address stays, so that signing in again leads back. */
export function signOut(reason?: string): void {
  for (const key of [STORED, STORED_KIND, STORED_NAME]) sessionStorage.removeItem(key);
  signInReason.value = reason;
  offered.value = undefined;
  identity.value = undefined;
}
