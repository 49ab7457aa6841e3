import type { ComponentType } from "preact";
import type { Right } from "../lib/identity.ts";
import { matchPath } from "./router.ts";
import { whyNot } from "./session.ts";

type Module = { default: ComponentType<{ params: Record<string, string> }> };
export type PageGroup = "Watch" | "Run" | "Manage";
export type Page = {
  name: string;
  group: PageGroup;
  icon: string;
  /** Pressed after `g`. */
  key: string;
  path: string;
  /** Every path that it shows; `path` is the first. */
  patterns: readonly string[];
  /** What it needs to show anything: one of these rights. */
  needs: readonly Right[];
  load: () => Promise<Module>;
};

type Row = [PageGroup, name: string, icon: string, key: string, patterns: [string, ...string[]], ...needs: Right[]];

const AGENTS: Row[4] = ["/agents", "/agents/:agent", "/schedules", "/schedules/:schedule"];

const ROWS: readonly Row[] = [
  ["Watch", "Live", "radio", "l", ["/"], "rest"],
  ["Watch", "Activity", "activity", "a", ["/activity", "/d/:delivery"], "rest"],
  ["Watch", "Events", "calendar-clock", "e", ["/events", "/e/:event"], "rest"],
  ["Run", "Agents", "bot", "g", AGENTS, "agent.list", "rest"],
  ["Run", "Sessions", "messages-square", "s", ["/sessions", "/s/:session", "/t/:turn"], "session.list"],
  ["Run", "Skills", "wrench", "k", ["/skills", "/skills/:skill"], "rest"],
  ["Run", "Webhooks", "webhook", "w", ["/webhooks", "/webhooks/:mapping", "/n/:notification"], "rest"],
  ["Manage", "Usage", "chart-column", "u", ["/usage"], "usage.stats"],
  ["Manage", "Settings", "settings", "t", ["/settings", "/settings/:tab"]],
  ["Manage", "API", "terminal", "i", ["/api"]],
];

/** Every page, in the order of the navigation. Each is loaded when it is first opened, from the folder of its name. */
export const pages: readonly Page[] = ROWS.map(([group, name, icon, key, patterns, ...needs]) => {
  const load = (): Promise<Module> => import(`../pages/${name.toLowerCase()}/page.tsx`);
  return { group, name, icon, key, path: patterns[0], patterns, needs, load };
});

/** The page that shows a path, and the parts of the path. */
export function pageOf(path: string): { page: Page; params: Record<string, string> } | undefined {
  for (const page of pages)
    for (const pattern of page.patterns) {
      const params = matchPath(pattern, path);
      if (params) return { page, params };
    }
  return undefined;
}

/** Why the signed-in identity cannot open a page; undefined if it can. A turn is read by REST, although a session is not. */
export function whyNoPage({ needs }: Page, params: Record<string, string> = {}): string | undefined {
  const reasons = (params.turn === undefined ? needs : (["rest"] as const)).map(whyNot);
  return reasons.includes(undefined) ? undefined : reasons[0];
}
