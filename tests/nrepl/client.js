// Talks with a server through the client of npm: node client.js MODULES PORT

const [modules, port] = process.argv.slice(2);
const nrepl = require(`${modules}/nrepl-client`);

function fail(message) {
  console.error(message);
  process.exit(1);
}

function expect(what, found, wanted) {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) {
    fail(`${what}: ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`);
  }
}

const promised = (call) => new Promise((resolve) => call((error, answer) => {
  if (error) fail(`${error}`);
  resolve(answer);
}));

const connection = nrepl.connect({ port: Number(port), host: "127.0.0.1" });
connection.on("error", fail);
connection.once("connect", async () => {
  const values = (messages) => messages.map((it) => it.value).filter((it) => it !== undefined);
  const described = await promised((done) => connection.describe(undefined, false, done));
  for (const op of ["clone", "close", "describe", "eval", "load-file", "interrupt", "stdin", "completions", "lookup", "eldoc"]) {
    if (!described[0].ops[op]) fail(`describe has no ${op}`);
  }
  const messages = await promised((done) => connection.clone(undefined, done));
  const session = Array.isArray(messages) ? messages.find((it) => it["new-session"])["new-session"] : messages["new-session"];
  expect("eval", values(await promised((done) => connection.eval("(+ 3 4) [:a]", undefined, session, done))), ["7", "[:a]"]);
  await promised((done) => connection.eval("(ns own.space) (def x 5)", undefined, session, done));
  expect("ns", values(await promised((done) => connection.eval("[x *1]", undefined, session, done))), ["[5 #'own.space/x]"]);
  const loaded = await promised((done) => connection.loadFile("(ns loaded)\n(def y 6)\n(inc y)", "loaded.clj", "/x/loaded.clj", done));
  expect("load-file", values(loaded), ["7"]);
  const sessions = await promised((done) => connection.lsSessions(done));
  if (!JSON.stringify(sessions).includes(session)) fail("ls-sessions has no session");
  const running = promised((done) => connection.eval("(loop [] (recur))", undefined, session, "loops", undefined, done));
  await new Promise((resolve) => setTimeout(resolve, 500));
  await promised((done) => connection.interrupt(session, "loops", done));
  const statuses = (await running).flatMap((it) => it.status || []);
  if (!statuses.includes("interrupted")) fail(`interrupt: ${statuses}`);
  await promised((done) => connection.close(session, done));
  connection.end();
  console.log("the client of npm: ok");
});
setTimeout(() => fail("the server does not answer"), 60000).unref();
