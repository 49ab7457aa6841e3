/** How long the event loop stood still at most, until it is asked. */
export const watchLoop = (): (() => number) => {
  let longest = 0;
  let last = performance.now();
  let watching = true;
  const look = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (watching) setImmediate(look);
  };
  setImmediate(look);
  return () => {
    watching = false;
    return longest;
  };
};
