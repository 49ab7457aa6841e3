/** So many requests leave in one go: more would make the first wait for the last. */
const AT_ONCE = 32;

/** What has something to send. */
type Sender = { flush(): void };

let leaving: Sender[] = [];
let isDue = false;

/**
 * Has requests leave together with the others of this turn of the event loop. A write wakes its reader, which costs as much as all else that a short
 * turn does; of several in a row the first pays for all.
 */
export const sendSoon = (sender: Sender): void => {
  leaving.push(sender);
  if (leaving.length >= AT_ONCE) sendAll();
  else if (!isDue) {
    isDue = true;
    setImmediate(sendDue);
  }
};

const sendDue = (): void => {
  isDue = false;
  sendAll();
};

const sendAll = (): void => {
  const all = leaving;
  leaving = [];
  for (const sender of all) sender.flush();
};
