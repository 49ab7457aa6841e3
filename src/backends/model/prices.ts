import type { Used } from "../backend.ts";

/** What a million tokens cost, as the configuration says it. */
export type Price = { input: number; cachedInput: number | undefined; output: number };

const MILLION = 1_000_000;

/** What these tokens cost, in billionths: exactly, and rounded once. Reasoning is part of the output, and what was cached of the input. */
export const costOf = ({ input, output, cached = 0 }: Used, price: Price): number => {
  const known = Math.min(cached, input);
  const atOnce =
    (input - known) * millionths(price.input) +
    known * millionths(price.cachedInput ?? price.input) +
    output * millionths(price.output);
  return Math.min(Math.round(atOnce / 1_000), Number.MAX_SAFE_INTEGER);
};

/** The same with its cost, where its model has a price. */
export const priced = (used: Used, price: Price | undefined): Used =>
  price ? { ...used, cost: costOf(used, price) } : used;

/** A price in whole millionths of its currency. */
const millionths = (price: number): number => Math.round(price * MILLION);
