import { EVENT_PATTERNS } from "#kit/notifications.ts";
import { isLoopback } from "./check-doors.ts";
import type { CheckedConfig } from "./config.ts";
import { type Findings, meantOrListed, notAmong, type Path } from "./problems.ts";

/** Checks the addresses of announcements and notifications, and the events and agents of notifications. */
export function checkEndpoints({ channels, notify, agents }: CheckedConfig, findings: Findings): void {
  for (const [name, { url }] of Object.entries(channels)) checkUrl(["channels", name, "url"], url, "replies", findings);
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
