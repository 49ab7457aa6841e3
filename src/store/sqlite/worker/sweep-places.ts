/** How many slices there were, and where the last one ended. A sweep walks sessions in the order of their last use, webhooks' apart from the others. */
export class SweepPlaces {
  count = 0;
  readonly unused = { webhook: { used: -1, ordinal: 0 }, other: { used: -1, ordinal: 0 } };
}
