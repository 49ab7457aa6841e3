import type { Page } from "playwright-core";

/** The pages of the console, with their names in the navigation. */
export const pages = [
  "Live",
  "Activity",
  "Events",
  "Agents",
  "Sessions",
  "Skills",
  "Webhooks",
  "Usage",
  "Settings",
  "API",
] as const;

export function pathOf(name: string): string {
  return name === "Live" ? "/console" : `/console/${name.toLowerCase()}`;
}

/** Pages are complete once nothing is being read. */
export async function untilWhole(page: Page, name: string): Promise<void> {
  await page.getByRole("heading", { name, exact: true, level: 1 }).waitFor();
  await page.locator("[aria-busy='true']").first().waitFor({ state: "detached" });
}
