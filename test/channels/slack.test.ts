import { expect, it } from "vitest";
import { createSlackChannel, slackTextOf } from "#channels/slack.ts";
import { channelSuite } from "./suite.ts";

channelSuite({ name: "slack", open: (url, parts) => createSlackChannel({ url }, parts) });

it("MUST prevent that a reply mentions people or hides an address", () => {
  expect(slackTextOf("<!channel> see <https://evil.example|your bank> & go")).toBe(
    "&lt;!channel&gt; see &lt;https://evil.example|your bank&gt; &amp; go",
  );
});

it("sends a text for an empty reply, which Slack does not accept", () => {
  for (const reply of ["", "  \n"]) expect(slackTextOf(reply)).toBe("(The reply is empty.)");
});

it("cuts a text that Slack would cut, between characters", () => {
  const LONGEST = 40_000;
  expect(slackTextOf("x".repeat(LONGEST))).toBe("x".repeat(LONGEST));
  expect(slackTextOf("x".repeat(LONGEST + 1))).toBe(`${"x".repeat(LONGEST - 1)}…`);
  for (let lead = 0; lead < 8; lead++) {
    for (const piece of ["&", "<", "🙂"]) {
      const text = slackTextOf("x".repeat(lead) + piece.repeat(LONGEST));
      expect(text.length).toBeLessThanOrEqual(LONGEST);
      expect(text.length).toBeGreaterThan(LONGEST - 8);
      expect(text).toMatch(/^x*((&amp;)*|(&lt;)*|(🙂)*)…$/u);
    }
  }
});
