// The service that Restate calls: ten steps with an effect outside each, a line in a file or a request.
// Usage: service.mjs PORT FILE [ADDRESS]
import { closeSync, openSync, writeSync } from "node:fs";
import * as restate from "@restatedev/restate-sdk";

// The SDK needs this, and Node 20 lacks it.
Promise.withResolvers ??= function () {
  const it = {};
  it.promise = new this((resolve, reject) => Object.assign(it, { resolve, reject }));
  return it;
};

const [port, path, address] = process.argv.slice(2);
const file = openSync(path, "a");
process.on("SIGTERM", () => {
  closeSync(file);
  process.exit(0);
});

async function effect(key) {
  if (address) {
    const headers = { "content-type": "application/json", "idempotency-key": key };
    const answer = await fetch(address, { method: "POST", headers, body: "{}" });
    await answer.arrayBuffer();
  }
  writeSync(file, `${key}\n`);
}

const bench = restate.service({
  name: "bench",
  handlers: {
    steps: async (cx, number) => {
      for (let step = 0; step < 10; step += 1) {
        await cx.run(`step ${step}`, () => effect(`${number}/${step}`));
      }
      return 10;
    },
  },
});
restate.serve({ services: [bench], port: Number(port) });
