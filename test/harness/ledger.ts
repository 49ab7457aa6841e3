// The account of one test file: every reply in the access log of a gateway must have been validated by the client that received it.

import { writePairs } from "./pairs.ts";

type Given = { requestId: string; operation: string; status: number };

const given: Given[] = [];
const checked = new Set<string>();
const faults: string[] = [];
let sent = 0;
let settled = 0;

/** Sends a request. It is settled when its reply was checked, or when there cannot be one. */
export async function settling<T>(exchange: () => Promise<T>): Promise<T> {
  sent++;
  try {
    return await exchange();
  } finally {
    settled++;
  }
}

/** The gateway has logged this reply. */
export function noteGiven(reply: Given): void {
  given.push(reply);
}

/** A client validated the reply of this request. */
export function noteChecked(requestId: string): void {
  checked.add(requestId);
}

/** An invalid reply fails the test that got it, and also the file: a test that expects an error must not swallow it. */
export function noteFault(fault: string): void {
  faults.push(fault);
}

/** Lists the open items; empty if every reply was checked and valid. */
function openItems(): string[] {
  const unseen = given.filter(({ requestId, status }) => status !== CALLER_GONE && !checked.has(requestId));
  return [
    ...new Set(faults),
    ...unseen.map(({ operation, status, requestId }) => `${operation} ${status} (${requestId}) was not checked`),
    ...(sent === settled ? [] : [`${sent} requests were made, ${settled} settled`]),
  ];
}

/** The logged status of a caller that disconnected before its answer. */
const CALLER_GONE = 499;

/** The account of the next file, which may be in the same process, starts empty. */
export function closeLedger(): void {
  writePairs();
  const open = openItems();
  given.length = faults.length = sent = settled = 0;
  checked.clear();
  if (open.length > 0) throw new Error(`Replies that were not held to the contract:\n  ${open.join("\n  ")}`);
}
