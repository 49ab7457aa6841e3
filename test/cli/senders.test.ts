import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { FORM } from "#kit/forms.ts";
import { SECRETS, shareGateway } from "#test/harness/gateway.ts";
import { noteChecked } from "#test/harness/ledger.ts";
import { printed } from "./in-process.ts";

const SECRET = "a-secret-of-all-senders";
const folder = mkdtempSync(join(tmpdir(), "senders-"));
afterAll(() => rmSync(folder, { recursive: true }));

function fileOf(name: string, content: string | object): string {
  const file = join(folder, name);
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

function verify(type: "slack" | "linear" | "twilio") {
  return { type, secret: SECRET };
}
const SMS_URL = "https://example.com/hooks/sms";
const gateway = await shareGateway({
  config: {
    webhooks: {
      mappings: {
        slack: { match: {}, message: "{body.command}{body.actions.0.value} {body.text}", verify: verify("slack") },
        linear: { match: { "body.type": "Issue" }, message: "{body.data.title}", verify: verify("linear") },
        alert: { match: { "body.status": "failed" }, message: "{body.status}" },
        sms: { match: {}, message: "{body.Body}", verify: { ...verify("twilio"), url: SMS_URL } },
      },
    },
  },
});
const at = ["--url", gateway.url];
// The command's requests do not pass through the harness.
afterAll(() => {
  for (const { requestId } of gateway.linesOf("request")) noteChecked(String(requestId));
});

function send(file: string, ...args: string[]) {
  return printed(["hooks", "send", file, "--secret", SECRET, ...args, ...at]);
}
async function previewOf(requestId: unknown): Promise<unknown> {
  const { json } = await gateway.console.call("deliveries.list", { query: { id: String(requestId) } });
  return (json.deliveries as { preview: string }[])[0]?.preview;
}
/** The message that a request without an answer started. */
async function silently(file: string, ...args: string[]): Promise<unknown> {
  const { out, err, code } = await send(file, ...args, "--json");
  expect([err, code]).toEqual(["", undefined]);
  const { message, requestId } = JSON.parse(out);
  expect(message).toBe("accepted, and answered without ids");
  return await previewOf(requestId);
}

test("hooks send --as slack sends a form, JSON as a form with --form, and events as JSON", async () => {
  const command = fileOf("command.form", "command=%2Fdeploy&text=a+b&trigger_id=t1\n");
  const slack = ["--as", "slack", "--mapping", "slack"];
  expect(await silently(command, ...slack)).toBe("/deploy a b");
  const flat = fileOf("command.json", { command: "/build", text: "c & d", trigger_id: "t2" });
  expect(await silently(flat, ...slack, "--form")).toBe("/build c & d");
  const button = fileOf("button.json", { type: "block_actions", actions: [{ value: "yes" }], trigger_id: "t3" });
  expect(await silently(button, ...slack, "--form")).toBe("yes");
  const event = fileOf("event.json", { type: "event_callback", text: "hi", event_id: "Ev1" });
  expect((await send(event, ...slack)).out).toContain("turn started");
  expect((await send(event, ...slack)).out).toContain("repeated: a request with this id was received before");
  expect((await send(command, ...slack)).out).toContain("repeated: a request with this id was received before");
  const named = await send(command, ...slack, "--id", "mine");
  expect([named.err, named.code]).toEqual([
    expect.stringContaining("--id has no effect with --as slack: `event_id` or `trigger_id` of the payload is the id."),
    2,
  ]);
  const other = fileOf("other.form", "command=%2Fdeploy&trigger_id=t4\n");
  const shown = await send(other, ...slack);
  expect(shown.out).toMatch(
    /accepted, and answered without ids[\s\S]*Next: (?:npx )?agent-gateway deliveries list --id req_/,
  );
});

test("hooks send without --as says that the request was a repeat", async () => {
  const file = fileOf("plain.json", { status: "failed" });
  const shared = ["hooks", "send", file, "--mapping", "alert", "--id", "once", "--webhook-token", SECRETS.webhookToken];
  expect((await printed([...shared, ...at])).out).toMatch(/^answer +turn started\n/);
  expect((await printed([...shared, ...at])).out).toMatch(
    /^answer +repeated: a request with this id was received before/,
  );
});

test("hooks send refuses options that would have no effect, and an id that no header can have", async () => {
  const file = fileOf("odd.json", { id: "evt_1" });
  const sms = fileOf("odd.form", "MessageSid=SM7&Body=x");
  const refused: [args: string[], sentence: string][] = [
    [["--form"], "--form needs --as: it is a part of a signed request."],
    [["--event", "push"], "--event needs --as: it is a part of a signed request."],
    [["--event", "push", "--as", "linear", "--mapping", "linear"], "--event is GitHub's: use it with --as github."],
    ...["a\nb", "", " a", "ü"].map((id): [string[], string] => [
      ["--id", id],
      "--id must be printable characters of ASCII, without a space at an end: it is sent in a header.",
    ]),
  ];
  for (const [args, sentence] of refused) {
    const { err, code } = await printed(["hooks", "send", file, "--secret", SECRET, ...args, ...at]);
    expect([code, err.split("\n")[0]]).toEqual([2, sentence]);
  }
  const twilio = await send(sms, "--as", "twilio", "--mapping", "sms", "--signed-url", SMS_URL, "--id", "a");
  expect([twilio.code, twilio.err.split("\n")[0]]).toEqual([
    2,
    "--id has no effect with --as twilio: MessageSid of the payload is the id.",
  ]);
});

test("hooks send --as linear renews the time in the body, which is signed", async () => {
  const old = fileOf("issue.json", { type: "Issue", data: { title: "Clocks" }, webhookTimestamp: 1_676_056_940_508 });
  const { out } = await send(old, "--as", "linear", "--mapping", "linear");
  expect(out).toContain("turn started");
});

test("hooks send --as twilio signs the configured address", async () => {
  const sms = fileOf("sms.form", "MessageSid=SM1&From=%2B1555&Body=Hi+there");
  const twilio = ["--as", "twilio", "--mapping", "sms"];
  expect(await silently(sms, ...twilio, "--signed-url", SMS_URL)).toBe("Hi there");
  const config = [
    "--config",
    fileOf("gateway.json", { webhooks: { mappings: { sms: { verify: { url: SMS_URL } } } } }),
  ];
  expect(await silently(fileOf("sms.json", { Body: "json" }), ...twilio, ...config)).toBe("json");
  const other = await send(sms, ...twilio, "--signed-url", `${SMS_URL}?a=1`);
  expect(other.err).toContain("The signature is missing, wrong, or too old. (HTTP 401)");
  const none = await send(sms, ...twilio, "--config", fileOf("none.json", {}));
  expect(none.err).toContain(
    "Twilio signs the address of the webhook, and the configuration has no verify.url for it.",
  );
});

test("hooks send refuses a file that is neither JSON nor a form", async () => {
  for (const text of ["hello", "a=%zz", "", '{"a":']) {
    const { err, code } = await send(fileOf("odd", text), "--as", "slack", "--mapping", "slack");
    expect([code, err]).toEqual([2, expect.stringMatching(/is neither JSON nor a form|is not JSON/)]);
  }
});

test("hooks test reads a form if a header says so, and a recorded form", async () => {
  const key = ["--key", SECRETS.consoleToken];
  const form = fileOf("try.form", "command=%2Fdeploy&text=a+b");
  const { out, err } = await printed([
    "hooks",
    "test",
    form,
    "--mapping",
    "slack",
    "-H",
    `content-type: ${FORM}`,
    ...key,
    ...at,
  ]);
  expect([err, out]).toEqual(["", expect.stringContaining("/deploy a b")]);
  const { out: sent } = await send(
    fileOf("rec.form", "command=%2Frecorded&text=x&trigger_id=t9"),
    "--as",
    "slack",
    "--mapping",
    "slack",
    "--json",
  );
  const { json } = await gateway.console.call("deliveries.list", { query: { id: JSON.parse(sent).requestId } });
  const [{ delivery_id }] = json.deliveries as [{ delivery_id: string }];
  expect((await printed(["hooks", "test", delivery_id, ...key, ...at])).out).toContain("/recorded x");
});
