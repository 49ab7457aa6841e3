import type { ComponentType } from "preact";
import type { Right } from "../lib/identity.ts";
import { matchPath } from "./router.ts";
import { whyNot } from "./session.ts";

type Module = { default: ComponentType<{ params: Record<string, string> }> };
export type PageGroup = "Watch" | "Run" | "Keep";
export type Page = {
  name: string;
  group: PageGroup;
  icon: string;
  /** Pressed after `g`. */
  key: string;
  path: string;
  /** Every path that it shows; `path` is the first. */
  patterns: readonly string[];
  /** What it needs to show anything. */
  needs?: Right;
  load: () => Promise<Module>;
};

/** Every page, in the order of the navigation. Each is loaded when it is first opened. */
export const pages: readonly Page[] = [
  {
    name: "Live",
    group: "Watch",
    icon: "radio",
    key: "l",
    path: "/",
    patterns: ["/"],
    needs: "rest",
    load: () => import("../pages/live/page.tsx"),
  },
  {
    name: "Activity",
    group: "Watch",
    icon: "activity",
    key: "a",
    path: "/activity",
    patterns: ["/activity", "/d/:delivery"],
    needs: "rest",
    load: () => import("../pages/activity/page.tsx"),
  },
  {
    name: "Events",
    group: "Watch",
    icon: "calendar-clock",
    key: "e",
    path: "/events",
    patterns: ["/events", "/e/:event"],
    needs: "rest",
    load: () => import("../pages/events/page.tsx"),
  },
  {
    name: "Agents",
    group: "Run",
    icon: "bot",
    key: "g",
    path: "/agents",
    patterns: ["/agents", "/agents/:agent"],
    needs: "agent.list",
    load: () => import("../pages/agents/page.tsx"),
  },
  {
    name: "Sessions",
    group: "Run",
    icon: "messages-square",
    key: "s",
    path: "/sessions",
    patterns: ["/sessions", "/s/:session", "/t/:turn"],
    needs: "session.list",
    load: () => import("../pages/sessions/page.tsx"),
  },
  {
    name: "Skills",
    group: "Run",
    icon: "wrench",
    key: "k",
    path: "/skills",
    patterns: ["/skills", "/skills/:skill"],
    needs: "rest",
    load: () => import("../pages/skills/page.tsx"),
  },
  {
    name: "Webhooks",
    group: "Run",
    icon: "webhook",
    key: "w",
    path: "/webhooks",
    patterns: ["/webhooks", "/webhooks/:mapping"],
    needs: "rest",
    load: () => import("../pages/webhooks/page.tsx"),
  },
  {
    name: "Usage",
    group: "Keep",
    icon: "chart-column",
    key: "u",
    path: "/usage",
    patterns: ["/usage"],
    needs: "usage.stats",
    load: () => import("../pages/usage/page.tsx"),
  },
  {
    name: "Settings",
    group: "Keep",
    icon: "settings",
    key: "t",
    path: "/settings",
    patterns: ["/settings", "/settings/:tab"],
    load: () => import("../pages/settings/page.tsx"),
  },
  {
    name: "API",
    group: "Keep",
    icon: "terminal",
    key: "i",
    path: "/api",
    patterns: ["/api"],
    load: () => import("../pages/api/page.tsx"),
  },
];

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
  const need = params.turn === undefined ? needs : "rest";
  return need && whyNot(need);
}
