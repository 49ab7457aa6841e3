/** A value that is not there yet, for those who wait for it. */
export const createLatch = <T>() => {
  let open: (value: T) => void = () => {};
  let opened: T | undefined;
  const promise = new Promise<T>((resolve) => {
    open = resolve;
  });
  return {
    promise,
    value: () => opened,
    open(value: T): void {
      opened = value;
      open(value);
    },
  };
};
