import { computed, signal } from "@preact/signals";
import { browserStorage, tabStorage } from "#console/lib/storage.ts";
import { type Identity, type Right, whyNot as whyNotOf } from "../lib/identity.ts";

/** An identity, and the last sign-out of this browser before its token was read. */
export type Given = Identity & { since: string };

export const identity = signal<Given | undefined>(undefined);
/** The identity of a link that the tab's user has not accepted yet. */
export const offered = signal<Given | undefined>(undefined);
/** The identities of the other tabs, if they differ: the user has not chosen yet. */
export const choices = signal<readonly Given[]>([]);
/** The reason for the sign-in page, if it needs an explanation. */
export const signInReason = signal<string | undefined>(undefined);
/** A stored token or a link is being checked. */
export const isChecking = signal(true);

/** RPC is open to the console token and to RPC tokens. */
export const mayRpc = computed(() => identity.value !== undefined && identity.value.kind !== "key");

/** Why the signed-in identity may not do something; undefined if it may. */
export function whyNot(right: Right): string | undefined {
  return whyNotOf(identity.value, right);
}

const STORED = "agent-gateway.token";
/** The last sign-out of any tab, in the storage of the browser and of each signed-in tab: a tab with an older one is signed out, too. */
const ENDED = "agent-gateway.signed-out";

/** The last sign-out of this browser. */
export function lastSignOut(): string {
  return browserStorage.getItem(ENDED) ?? "";
}

/** The token that this tab has stored, unless another tab has signed out since. */
export function storedToken(): string | undefined {
  const token = tabStorage.getItem(STORED);
  if (token === null) return undefined;
  if ((tabStorage.getItem(ENDED) ?? "") === lastSignOut()) return token;
  signOut(ELSEWHERE);
  return undefined;
}

/** Signs this tab in, unless a tab has signed out since the token was read. */
export function signIn(next: Given): void {
  if (next.since !== lastSignOut()) {
    signOut(ELSEWHERE);
    return;
  }
  tabStorage.setItem(STORED, next.token);
  tabStorage.setItem(ENDED, next.since);
  show(next, undefined);
}

function show(next: Given | undefined, reason: string | undefined): void {
  signInReason.value = reason;
  offered.value = undefined;
  choices.value = [];
  identity.value = next;
}

/** Signs this tab out. The address stays, so that signing in again leads back. */
export function signOut(reason?: string): void {
  for (const key of [STORED, ENDED]) tabStorage.removeItem(key);
  show(undefined, reason);
}

/** Signs out all tabs of this browser, also those that show another page now. */
export function signOutEverywhere(): void {
  browserStorage.setItem(ENDED, crypto.getRandomValues(new Uint32Array(2)).join("."));
  signOut();
}

const ELSEWHERE = "You signed out in another tab.";
function follow(): void {
  const given = identity.peek() ?? offered.peek() ?? choices.peek()[0];
  if (given && given.since !== lastSignOut()) signOut(ELSEWHERE);
}
addEventListener("storage", follow);
// A page that was frozen got no event.
addEventListener("pageshow", follow);

/** Takes the code or token in the address's fragment, and removes it from the address at once. */
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
