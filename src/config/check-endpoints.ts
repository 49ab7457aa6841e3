import { EVENT_PATTERNS } from "#kit/notifications.ts";
import { isLoopback } from "./check-doors.ts";
import type { CheckedConfig } from "./config.ts";
import { type Findings, meantOrListed, notAmong, type Path } from "./problems.ts";

/** Checks the addresses of announcements and notifications, and the events and agents of notifications. */
export function checkEndpoints({ channels, notify, agents }: CheckedConfig, findings: Findings): void {
  for (const [name, channel] of Object.entries(channels)) {
    const path = ["channels", name];
    if (channel.url !== undefined) checkUrl([...path, "url"], channel.url, "replies", findings);
    if (channel.type === "slack") checkSlack(path, channel, findings);
  }
  const known = Object.keys(agents);
  for (const [name, endpoint] of Object.entries(notify)) {
    const path = ["notify", name];
    checkUrl([...path, "url"], endpoint.url, "notifications", findings);
    for (const [index, event] of endpoint.events.entries()) {
      if (!EVENT_PATTERNS.includes(event))
        findings.refuse([...path, "events", index], `is not an event; ${meantOrListed(EVENT_PATTERNS, event)}`);
    }
    for (const [index, agent] of (endpoint.agents ?? []).entries()) {
      if (!known.includes(agent))
        findings.refuse([...path, "agents", index], `names an agent ${notAmong(known, agent, "agents")}`);
    }
  }
}

type Slack = Extract<CheckedConfig["channels"][string], { type: "slack" }>;

function checkSlack(path: Path, { url, botToken, to }: Slack, { refuse }: Findings): void {
  if (botToken === undefined && url === undefined)
    refuse(path, "needs `botToken`, or the `url` of an incoming webhook.");
  else if (botToken === undefined && to !== undefined)
    refuse([...path, "to"], "needs `botToken`: an incoming webhook posts only to its own channel.");
  if (botToken !== undefined && url !== undefined && /^https?:\/\/hooks\.slack[^/]*\.com(?:[/:]|$)/i.test(url))
    refuse([...path, "url"], "is the address of an incoming webhook, which takes no `botToken`: remove one of them.");
  if (botToken !== undefined && !/^[!-~]*$/.test(botToken))
    refuse(
      [...path, "botToken"],
      "contains a space or a character that is not allowed in a header: copy the token exactly as Slack shows it.",
    );
}

/** The address may be secret, so the messages do not contain it. */
function checkUrl(path: Path, written: string, sent: string, { refuse, warn }: Findings): void {
  const url = URL.canParse(written) ? new URL(written) : undefined;
  if (url === undefined) {
    refuse(path, "must be an address, for example `https://example.com/path`.");
  } else if (url.username !== "" || url.password !== "") {
    refuse(path, "must not contain a user name or a password. Requests are signed with `secret`.");
  } else if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    warn(path, `begins with \`http:\`, so ${sent} go there in clear text: use \`https:\`.`);
  }
}
