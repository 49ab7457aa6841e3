// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { expect, test } from "vitest";
import { load, refusal, withSections } from "./configs.ts";

function described(description: string): string {
  return withSections({ agents: { main: { backend: "echo", description } } });
}
async function description(text: string, env = {}) {
  return (await load(described(text), { env })).config.agents.main?.description;
}

test("a reference is replaced by the value of its variable", async () => {
  expect(await description("from ${PLACE}, ${PLACE}", { PLACE: "here" })).toBe("from here, here");
});

test("the value of a variable is not expanded again", async () => {
  expect(await description("${A}", { A: "${B}", B: "no" })).toBe("${B}");
});

test("$${ gives the text itself", async () => {
  expect(await description("$${HOME} and $5 and {body}")).toBe("${HOME} and $5 and {body}");
});

test("a dollar sign before a placeholder remains", async () => {
  const mappings = { paid: { match: {}, message: "${body.amount} from ${headers.x-from}" } };
  const { config } = await load(withSections({ webhooks: { mappings } }));
  expect(config.webhooks.mappings.paid?.message).toBe("${body.amount} from ${headers.x-from}");
});

test("a variable that is not set is refused by its name, in both formats", async () => {
  expect(
    await refusal("{\n agents: { main: { backend: 'echo' } },\n webhooks: { token: '${WEBHOOK_TOKEN}' } }"),
  ).toEqual(["gateway.json5:3:21: webhooks.token refers to the variable WEBHOOK_TOKEN, which is not set: set it."]);
  expect(
    await refusal("agents: { main: { backend: echo } }\nwebhooks:\n  token: ${WEBHOOK_TOKEN}", {
      name: "gateway.yaml",
    }),
  ).toEqual(["gateway.yaml:3:10: webhooks.token refers to the variable WEBHOOK_TOKEN, which is not set: set it."]);
});

test.each(["", "  "])("an empty variable (%j) is refused by its name", async (value) => {
  expect(await refusal(withSections({ webhooks: { token: "${T}" } }), { env: { T: value } })).toEqual([
    "gateway.json5:1:59: webhooks.token refers to the variable T, which is empty: give it a value.",
  ]);
});

test.each(["${REST-KEY}", "${}", "${OPEN", "${1}"])("%s is not a reference and is refused", async (text) => {
  expect(await refusal(described(text))).toEqual([
    'gateway.json5:1:51: agents.main.description holds "${" without the name of a variable and "}": write ${NAME}, or $${ for the text itself.',
  ]);
});

test("a missing variable is one mistake, wherever it is used", async () => {
  const lines = await refusal(withSections({ sessions: { retention: "${KEEP}" } }));
  expect(lines).toEqual([
    "gateway.json5:1:63: sessions.retention refers to the variable KEEP, which is not set: set it.",
  ]);
});

test("the value of a variable never appears in an error", async () => {
  const env = { TOKEN: "very-secret value" };
  const lines = await refusal(withSections({ sessions: { retention: "${TOKEN}" }, webhooks: { token: "${TOKEN}" } }), {
    env,
  });
  expect(lines.join("\n")).not.toContain("very-secret");
});

test.each(["18789", "http"])(
  "a reference (%j) in the place of a number is distinguished from a number in quotes",
  async (PORT) => {
    const [told, ...others] = await refusal(withSections({ gateway: { port: "${PORT}" } }), { env: { PORT } });
    expect(told).toMatch(
      /: gateway\.port must be a whole number, and a reference gives text: write the value itself, or leave it out and set GATEWAY_PORT\.$/,
    );
    expect(others).toEqual([]);
  },
);

test("a reference in the place of a flag is reported as such", async () => {
  const config = withSections({ gateway: { openai: { enabled: "${ON}" } } });
  expect((await refusal(config, { env: { ON: "true" } }))[0]).toMatch(
    /: gateway\.openai\.enabled must be `true` or `false`, and a reference gives text: write the value itself\.$/,
  );
});

test("an object in the place of a number is not mistaken for a reference", async () => {
  expect((await refusal(withSections({ gateway: { port: {} } })))[0]).not.toContain("reference");
});
