// Signs deliveries with the libraries of GitHub and Stripe. Reads lines {kind, secret, body, at?} and writes headers.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import readline from "node:readline";

const require = createRequire(`${process.argv[2]}/`);
const github = await import(pathToFileURL(`${process.argv[2]}/@octokit/webhooks-methods/dist-node/index.js`).href);
const Stripe = require("stripe");
const stripe = new (Stripe.default ?? Stripe)("sk_test_none");

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { kind, secret, body, at } = JSON.parse(line);
  const headers =
    kind === "github"
      ? { "X-Hub-Signature-256": await github.sign(secret, body) }
      : { "Stripe-Signature": stripe.webhooks.generateTestHeaderString({ payload: body, secret, timestamp: at }) };
  process.stdout.write(`${JSON.stringify(headers)}\n`);
}
