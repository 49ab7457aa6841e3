import type { Delivery } from "#generated/clients/typescript/src/rest.ts";
import { curlOfDelivery, prettyBody } from "./requests.ts";

/** A recorded request to paste into an issue: its result, its timeline, its headers and body, and the command that repeats it. */
export function markdownOf(delivery: Delivery, origin: string): string {
  const { delivery_id, outcome, status, method, path, at, agent, preview, reply_preview, announcement, error } =
    delivery;
  const began = new Date(at).getTime();
  const facts = [
    ["Outcome", [outcome, status].filter((one) => one !== null).join(" ")],
    ["At", at],
    ["Agent", agent],
    ["Message", preview],
    ["Reply", reply_preview],
    [
      "Channel",
      announcement && [announcement.channel, announcement.state, announcement.reason].filter(Boolean).join(", "),
    ],
    ["Error", error && [error.name, error.detail].filter(Boolean).join(": ")],
  ].flatMap(([name, value]) => (value ? `- ${name}: ${code(value)}` : []));
  const steps = delivery.timeline.map(
    (step) => `| +${Math.max(0, new Date(step.at).getTime() - began)} ms | ${step.name} | ${cell(step.detail)} |`,
  );
  return [
    `### ${code(`${method} ${path}`)}`,
    facts.join("\n"),
    ["| Time | Step | Detail |", "|---|---|---|", ...steps].join("\n"),
    section("Headers", block(JSON.stringify(delivery.headers, null, 2), "json")),
    delivery.body === null ? undefined : section("Body", block(prettyBody(delivery) ?? delivery.body, "json")),
    section("curl", block(curlOfDelivery(delivery, origin), "sh")),
    `${code(delivery_id)}, ${origin}/console/d/${delivery_id}`,
  ]
    .filter((part) => part !== undefined && part !== "")
    .join("\n\n");
}

function section(name: string, content: string): string {
  return `<details><summary>${name}</summary>\n\n${content}\n\n</details>`;
}

/** A fence that is longer than each run of backticks in the text, so that nothing in the text ends it. */
function block(text: string, language: string): string {
  const fence = fenceFor(text, 3);
  return `${fence}${language}\n${text}\n${fence}`;
}

function code(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  const fence = fenceFor(line, 1);
  return fence === "`" ? `\`${line}\`` : `${fence} ${line} ${fence}`;
}

function cell(detail: object | null): string {
  return detail === null ? "" : code(JSON.stringify(detail).slice(0, 200)).replaceAll("|", "\\|");
}

function fenceFor(text: string, least: number): string {
  const longest = (text.match(/`+/g) ?? []).reduce((most, run) => Math.max(most, run.length), 0);
  return "`".repeat(Math.max(least, longest + 1));
}
