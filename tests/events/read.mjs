// Follows streams with the EventSource of the package `eventsource`, until each was closed for good.
// Usage: read.mjs FOLDER_OF_NODE_MODULES NAMES_OF_EVENTS ADDRESS...
// Prints a line with the number of events that all streams have had, whenever it changes, and then one line for each stream.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, names, ...addresses] = process.argv.slice(2);
const resolve = createRequire(pathToFileURL(`${modules}/`)).resolve;
const { EventSource } = await import(pathToFileURL(resolve("eventsource")));

let total = 0;
let open = addresses.length;
addresses.forEach((address, index) => {
  const source = new EventSource(address);
  const events = [];
  let connections = 0;
  source.onopen = () => (connections += 1);
  for (const name of names.split(",")) {
    source.addEventListener(name, (event) => {
      const { seq } = JSON.parse(event.data);
      events.push([Number(event.lastEventId), seq, name]);
      total += 1;
      console.log(JSON.stringify({ total }));
    });
  }
  source.onerror = (error) => {
    if (source.readyState !== EventSource.CLOSED) return;
    console.log(JSON.stringify({ index, code: error.code, connections, events }));
    open -= 1;
    // Long enough that one that came back all the same would be seen.
    if (open === 0) setTimeout(() => process.exit(0), 300);
  };
});
