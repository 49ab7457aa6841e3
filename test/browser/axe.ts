import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

type Violation = { id: string; impact: string; nodes: { html: string; failureSummary: string }[] };

/** The serious faults that axe finds on a page. In dark mode only colours differ from the same page in light mode. */
export async function faultsOf(page: Page, colorScheme: "light" | "dark"): Promise<string[]> {
  // The page's policy allows only its own scripts; the debugger bypasses it.
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
