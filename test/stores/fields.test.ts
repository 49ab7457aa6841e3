import { expect, expectTypeOf, it } from "vitest";
import {
  characters,
  listOf,
  nested,
  number,
  optional,
  short,
  type TypeOf,
  text,
  typed,
  weigherOf,
} from "#store/fields.ts";

const STEP = { at: number, detail: optional(text) };
const NOTE = {
  id: short,
  state: typed<"open" | "closed">(),
  owner: characters,
  body: text,
  title: optional(text),
  error: optional(nested({ name: short, detail: text }, 20)),
  steps: listOf(nested(STEP, 10)),
};
type Note = TypeOf<typeof NOTE>;

const EMPTY: Note = { id: "n", state: "open", owner: "", body: "", title: undefined, error: undefined, steps: [] };
const weigh = weigherOf(100, NOTE);

it("infers the type of a record from its fields", () => {
  expectTypeOf<Note>().toEqualTypeOf<{
    id: string;
    state: "open" | "closed";
    owner: string;
    body: string;
    title: string | undefined;
    error: { name: string; detail: string } | undefined;
    steps: readonly { at: number; detail: string | undefined }[];
  }>();
});

it.each<[string, Partial<Note>, number]>([
  ["the base of a record", {}, 100],
  ["short texts as a part of the base", { id: "a long id" }, 100],
  ["the bytes of texts", { body: "ü漢", title: "x" }, 106],
  ["the length of names", { owner: "ü漢" }, 102],
  ["the base and the texts of a record in it", { error: { name: "broken", detail: "ü" } }, 122],
  [
    "each record of a list",
    {
      steps: [
        { at: 1, detail: undefined },
        { at: 2, detail: "two" },
      ],
    },
    123,
  ],
])("counts %s", (_, change, bytes) => {
  expect(weigh({ ...EMPTY, ...change })).toBe(bytes);
});
