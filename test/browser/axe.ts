import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

type Violation = { id: string; impact: string; nodes: { html: string; failureSummary: string }[] };

/** The faults that axe finds serious on a page. In the dark only colours differ from the same page in light. */
export async function faultsOf(page: Page, colorScheme: "light" | "dark"): Promise<string[]> {
  // The page's policy lets no script in but its own; the debugger is above it.
  const session = await page.context().newCDPSession(page);
  await session.send("Page.setBypassCSP", { enabled: true });
  await session.send("Runtime.evaluate", { expression: axe });
  const runOnly = colorScheme === "dark" ? ", runOnly: ['color-contrast']" : "";
  const { violations } = (await page.evaluate(`axe.run(document, { resultTypes: ['violations']${runOnly} })`)) as {
    violations: Violation[];
  };
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
    );
}
