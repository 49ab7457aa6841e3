import type { LookupAddress } from "node:dns";
import { expect, it } from "vitest";
import { createLookup } from "#outbound/lookup.ts";

type Answer = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

function open() {
  const asked: { host: string; answer: Answer }[] = [];
  const resolve = (host: string, _options: object, answer: Answer) => void asked.push({ host, answer });
  const lookup = createLookup(resolve as unknown as Parameters<typeof createLookup>[0]);
  const ask = (host: string) =>
    new Promise((done, fail) =>
      lookup(host, { all: true }, (error, addresses) => (error ? fail(error) : done(addresses))),
    );
  return { asked, ask };
}

const HERE: LookupAddress[] = [{ address: "127.0.0.1", family: 4 }];

it("resolves a name once for concurrent requests, and again afterwards", async () => {
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

it("does not delay one name for another", async () => {
  const { asked, ask } = open();
  void ask("silent.example");
  const other = ask("b.example");
  asked[1]?.answer(null, HERE);
  expect(await other).toEqual(HERE);
});

it.each([
  ["169.254.169.254", 4],
  ["169.254.0.1", 4],
  ["fe80::1", 6],
  ["fe80::1%eth0", 6],
  ["febf:ffff::1", 6],
  ["::ffff:169.254.169.254", 6],
  ["::ffff:a9fe:a9fe", 6],
  ["100.100.100.200", 4],
  ["::ffff:100.100.100.200", 6],
  ["fd00:ec2::254", 6],
  ["fd00:0ec2:0000::23", 6],
  ["fd20:ce::254", 6],
])("F32: a name that resolves to the metadata address %s of a cloud has no address", async (address, family) => {
  const { asked, ask } = open();
  const alone = ask("a.example");
  asked[0]?.answer(null, [{ address, family }]);
  await expect(alone).rejects.toMatchObject({ code: "ERR_METADATA_ADDRESS" });
  // With another address, only that one is omitted.
  const beside = ask("a.example");
  asked[1]?.answer(null, [{ address, family }, ...HERE]);
  expect(await beside).toEqual(HERE);
  // The same for a query of a single address.
  const one = createLookup(((_host: string, _options: object, answer: (...found: unknown[]) => void) =>
    answer(null, address, family)) as unknown as Parameters<typeof createLookup>[0]);
  const error = await new Promise((done) => one("a.example", {}, (...found) => done(found[0])));
  expect(error).toMatchObject({ code: "ERR_METADATA_ADDRESS" });
});

it.each([
  "169.253.255.255",
  "169.255.0.0",
  "10.0.0.1",
  "127.0.0.1",
  "100.100.100.100",
  "fec0::1",
  "fd00::1",
  "fd00:ec3::1",
  "::1",
  "::ffff:10.0.0.1",
])("a name may resolve to the private address %s", async (address) => {
  const { asked, ask } = open();
  const found = ask("a.example");
  const answer = [{ address, family: address.includes(":") ? 6 : 4 }];
  asked[0]?.answer(null, answer);
  expect(await found).toEqual(answer);
});
