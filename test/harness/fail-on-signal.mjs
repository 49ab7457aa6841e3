// Loaded before the gateway by `node --import`: causes mistakes that no request can cause.
process.on("SIGUSR2", () => {
  throw new Error("thrown where nobody catches");
});
process.on("SIGWINCH", () => {
  Promise.reject(new Error("rejected where nobody looks"));
});
