import { describe, expect, it } from "vitest";
import { RequestRefused } from "#backends/model/failures.ts";
import { failure, KIND_NAMES, KINDS, type KindName, modelAt, openModels, otherFormOf } from "./model-kinds.ts";
import { USAGE } from "./stand-ins/model-answers.ts";
import { collect, textOf, turnOf } from "./suite.ts";

describe.each(KIND_NAMES)("a model of the type %s", (kind: KindName) => {
  it.each(KIND_NAMES.filter((other) => other !== kind))(
    "says what to check where its address is that of a provider of the kind %s, and has nothing left open there",
    async (other) => {
      await using standIn = await KINDS[other].start();
      const backend = openModels({ main: modelAt(kind, standIn.url) });
      const { error, text } = await failure(backend.run(turnOf(), new AbortController().signal));
      expect({ message: error.message, retryable: error.retryable, text }).toEqual({
        message: otherFormOf(kind),
        retryable: false,
        text: "",
      });
      expect(error).not.toBeInstanceOf(RequestRefused);
    },
  );

  it("completes with an empty reply if its provider reports a normal end", async () => {
    await using standIn = await KINDS[kind].start({ text: [] });
    const backend = openModels({ main: modelAt(kind, standIn.url) });
    const chunks = await collect(backend.run(turnOf(), new AbortController().signal));
    expect(textOf(chunks)).toBe("");
    expect(chunks.at(-1)).toMatchObject({ usage: { input: USAGE.input, output: USAGE.output } });
  });
});
