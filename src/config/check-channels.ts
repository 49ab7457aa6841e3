import type { Findings } from "./check.ts";
import { isLoopback } from "./check-doors.ts";
import type { CheckedConfig } from "./conform.ts";
import type { Fault } from "./problems.ts";

/** What the schema cannot say of the addresses that announcements go to. They may be secret: none is repeated. */
export function checkChannels({ channels }: CheckedConfig): Findings {
  const faults: Fault[] = [];
  const warnings: Fault[] = [];
  for (const [name, { url: written }] of Object.entries(channels)) {
    const path = ["channels", name, "url"];
    const url = URL.canParse(written) ? new URL(written) : undefined;
    if (url === undefined) {
      faults.push({ path, on: "value", message: "must be an address, for example `https://example.com/path`." });
    } else if (url.username !== "" || url.password !== "") {
      const message =
        "has a user name or a password in it, which is not sent: remove it. A webhook is signed with `secret`.";
      faults.push({ path, on: "value", message });
    } else if (url.protocol === "http:" && !isLoopback(url.hostname)) {
      const message = "begins with `http:`, so replies go there in clear text: use `https:`.";
      warnings.push({ path, on: "value", message });
    }
  }
  return { faults, warnings };
}
