// Loaded before the gateway by `node --import`: mistakes that no request can make happen.
process.on("SIGUSR2", () => {
  throw new Error("thrown where nobody catches");
});
process.on("SIGWINCH", () => {
  Promise.reject(new Error("rejected where nobody looks"));
});
