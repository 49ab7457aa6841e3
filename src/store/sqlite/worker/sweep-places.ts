/** Where the last slice of a sweep ended. A sweep walks sessions in the order of their last use, webhooks' apart from the others. */
export class SweepPlaces {
  readonly unused = { webhook: { used: -1, ordinal: 0 }, other: { used: -1, ordinal: 0 } };
}
