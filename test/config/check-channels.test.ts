// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { describe, expect, test } from "vitest";
import { good, load, refused, warned, withSections } from "./configs.ts";

const webhook = (url: string, secret = good(1)) => ({ channels: { ops: { type: "webhook", url, secret } } });
const slack = (url: string) => ({ channels: { team: { type: "slack", url } } });

describe("a channel", () => {
  test.each([
    ["webhook", webhook("https://hooks.example.com/agent?x=1")],
    ["slack", slack("https://hooks.slack.com/services/T0/B0/x")],
  ])("of type %s is as the file says", async (_, sections) => {
    const { config, warnings } = await load(withSections(sections));
    expect(config.channels).toEqual(sections.channels);
    expect(warnings).toEqual([]);
  });

  test("of Slack takes its address from the environment, as it is a secret", async () => {
    const url = "https://hooks.slack.com/services/T0/B0/x";
    const { config } = await load(withSections(slack("${SLACK_URL}")), { env: { SLACK_URL: url } });
    expect(config.channels.team).toEqual({ type: "slack", url });
    expect(await refused(slack("${SLACK_URL}"))).toEqual([
      "channels.team.url refers to the variable SLACK_URL, which is not set: set it.",
    ]);
  });

  test.each(["https://", "http://a b", "https://[::1", "https://x:99999/"])(
    "of the address %s is refused",
    async (url) => {
      const [line = ""] = await refused(webhook(url));
      expect(line).toMatch(/^channels\.ops\.url must be an address/);
    },
  );

  test("whose address holds a user is refused, and the address is not repeated", async () => {
    expect(await refused(slack("https://ada:hunter2@example.com/x"))).toEqual([
      "channels.team.url has a user name or a password in it, which is not sent: remove it. A webhook is signed with `secret`.",
    ]);
  });

  test("in clear text is warned of, but on this machine", async () => {
    expect(await warned(webhook("http://example.com/x"))).toEqual([
      "channels.ops.url begins with `http:`, so replies go there in clear text: use `https:`.",
    ]);
    for (const host of ["127.0.0.1:9", "localhost", "[::1]:9"]) {
      expect(await warned(webhook(`http://${host}/x`))).toEqual([]);
    }
  });

  test("that announcements go to by default has to be there", async () => {
    expect(await refused({ ...slack("https://example.com/x"), gateway: { announceTo: "teem" } })).toEqual([
      "gateway.announceTo names a channel that is not configured; did you mean `team`?",
    ]);
    const { config } = await load(withSections({ ...slack("https://example.com/x"), gateway: { announceTo: "team" } }));
    expect(config.gateway.announceTo).toBe("team");
  });
});

describe("a secret of Standard Webhooks", () => {
  const said = "begins with `whsec_`, but the rest is not base64: copy the whole secret, as it was shown.";
  const mapping = (type: string, secret: string | string[]) => ({
    webhooks: { mappings: { a: { match: {}, message: "x", verify: { type, secret } } } },
  });

  test.each(["whsec_", "whsec_not base64 at all", "whsec_a-b_c-d_e-f_g-h_"])("%j is refused", async (secret) => {
    expect(await refused(webhook("https://example.com", secret))).toEqual([`channels.ops.secret ${said}`]);
    expect(await refused(mapping("standard-webhooks", secret))).toEqual([`webhooks.mappings.a.verify.secret ${said}`]);
    expect(await refused(mapping("standard-webhooks", [good(1), secret]))).toEqual([
      `webhooks.mappings.a.verify.secret[1] ${said}`,
    ]);
  });

  test("is base64 behind whsec_, or any other text", async () => {
    for (const secret of ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2VjcmV0LXNlY3JldA==", good(3)]) {
      expect((await load(withSections(webhook("https://example.com", secret)))).warnings).toEqual([]);
      expect((await load(withSections(mapping("standard-webhooks", secret)))).warnings).toEqual([]);
    }
  });

  test("is another thing than Stripe's, which begin alike and are text", async () => {
    await load(withSections(mapping("stripe", "whsec_a-b_c-d_e-f_g-h_")));
  });
});

describe("a mapping's secret", () => {
  const verified = (secret: unknown) => ({
    webhooks: { mappings: { a: { match: {}, message: "x", verify: { type: "github", secret } } } },
  });

  test("is always a list, of one or of several", async () => {
    const secretOf = async (secret: unknown) =>
      (await load(withSections(verified(secret)))).config.webhooks.mappings.a?.verify;
    expect(await secretOf(good(1))).toEqual({ type: "github", secret: [good(1)] });
    expect(await secretOf([good(1), good(2)])).toEqual({ type: "github", secret: [good(1), good(2)] });
  });

  test("is judged each by itself", async () => {
    expect(await refused(verified([good(1), "  "]))).toEqual([
      "webhooks.mappings.a.verify.secret[1] is empty: give it a value, best as ${NAME} from the environment.",
    ]);
    expect(await warned(verified(["short", good(1)]))).toEqual([
      expect.stringMatching(/^webhooks\.mappings\.a\.verify\.secret\[0\] is shorter than 16 characters/),
    ]);
  });
});
