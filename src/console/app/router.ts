import { batch, computed, signal } from "@preact/signals";

const BASE = "/console";
function here() {
  return location.pathname + location.search;
}

/** The address of the page: the path below `/console` and its query. */
const address = signal(here());
const url = computed(() => new URL(address.value, location.origin));
/** The path below `/console` of a path of the gateway. */
export function pathOf(pathname: string): string {
  return pathname.slice(BASE.length).replace(/\/+$/, "") || "/";
}
export const path = computed(() => pathOf(url.value.pathname));
export const query = computed(() => url.value.searchParams);

/** Returns true if the shown page keeps its scroll position when it changes to another of its paths. */
export const keepsPlace: { current: (pathname: string) => boolean } = { current: () => false };

/** Goes to a path below `/console`. `replace` leaves no step to go back to. */
export function go(to: string, { replace = false } = {}): void {
  const target = to.startsWith(BASE) ? to : BASE + (to === "/" ? "" : to);
  if (target === address.peek()) return;
  history[replace ? "replaceState" : "pushState"](null, "", target);
  const { pathname } = new URL(target, location.origin);
  const moved = pathname !== url.peek().pathname;
  const isKept = keepsPlace.current(pathname);
  batch(() => {
    address.value = target;
  });
  if (moved && !replace && !isKept) scrollTo(0, 0);
}

/** Changes parts of the query and leaves the rest; an empty value removes a part. */
export function setQuery(changes: Readonly<Record<string, string | undefined>>, { replace = true } = {}): void {
  const next = new URLSearchParams(query.peek());
  for (const [name, value] of Object.entries(changes)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  const text = next.toString();
  go(url.peek().pathname + (text && `?${text}`), { replace });
}

/** The values that a part of the query may have, each with its word. */
export type Choices<Value extends string = string> = readonly (readonly [value: Value, word: string])[];

/** The value of a part of the query. A value that is not among `choices` counts as missing, because anyone can write an address. */
export function choiceOf<Value extends string>(
  given: URLSearchParams,
  name: string,
  choices: Choices<Value>,
): Value | undefined {
  return choices.find(([value]) => value === given.get(name))?.[0];
}

/** The address of a path below `/console`, as a link has it. */
export function hrefOf(to: string): string {
  return BASE + (to === "/" ? "" : to);
}

/** The parts of a path that matches a pattern such as `/s/:id`; undefined if it does not match. */
export function matchPath(pattern: string, given: string): Record<string, string> | undefined {
  const [want, have] = [pattern.split("/"), given.split("/")];
  if (want.length !== have.length) return undefined;
  const found: Record<string, string> = {};
  for (const [n, part] of want.entries()) {
    const value = have[n] ?? "";
    if (part.startsWith(":")) {
      try {
        found[part.slice(1)] = decodeURIComponent(value);
      } catch {
        return undefined;
      }
    } else if (part !== value) return undefined;
  }
  return found;
}

addEventListener("popstate", () => {
  address.value = here();
});

/** Links to our own pages change the address without a load. */
document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return;
  const link = (event.target as Element | null)?.closest("a");
  if (!link || link.target || link.origin !== location.origin || link.hasAttribute("download")) return;
  if (link.pathname !== BASE && !link.pathname.startsWith(`${BASE}/`)) return;
  event.preventDefault();
  go(link.pathname + link.search);
});
