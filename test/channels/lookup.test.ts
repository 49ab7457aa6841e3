import type { LookupAddress } from "node:dns";
import { expect, it } from "vitest";
import { createLookup } from "#core/lookup.ts";

type Answer = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

const open = () => {
  const asked: { host: string; answer: Answer }[] = [];
  const resolve = (host: string, _options: object, answer: Answer) => void asked.push({ host, answer });
  const lookup = createLookup(resolve as unknown as Parameters<typeof createLookup>[0]);
  const ask = (host: string) =>
    new Promise((done, fail) =>
      lookup(host, { all: true }, (error, addresses) => (error ? fail(error) : done(addresses))),
    );
  return { asked, ask };
};

const HERE: LookupAddress[] = [{ address: "127.0.0.1", family: 4 }];

it("asks once for a name that many want at once, and again afterwards", async () => {
  const { asked, ask } = open();
  const both = Promise.all([ask("a.example"), ask("a.example")]);
  expect(asked).toHaveLength(1);
  asked[0]?.answer(null, HERE);
  expect(await both).toEqual([HERE, HERE]);
  const later = ask("a.example");
  expect(asked).toHaveLength(2);
  asked[1]?.answer(new Error("gone"), []);
  await expect(later).rejects.toThrow("gone");
});

it("lets no name wait for another", async () => {
  const { asked, ask } = open();
  void ask("silent.example");
  const other = ask("b.example");
  asked[1]?.answer(null, HERE);
  expect(await other).toEqual(HERE);
});
