// Runs in a worker behind Go's wasm_exec.js: one message with the program and a request, then one answer. The page ends the worker.
"use strict";
const last = []; // lines that the program printed last: what it says when it dies
console.log = line => {
  last.push(String(line));
  if (last.length > 40) last.shift();
};
onmessage = async ({ data }) => {
  let answered = false;
  const send = globalThis.postMessage.bind(globalThis);
  globalThis.postMessage = message => {
    answered ||= message.kind === "answered" || message.kind === "failed";
    send(message);
  };
  let failure = "";
  try {
    globalThis.request = data.request;
    const program = new Blob([data.program]).stream().pipeThrough(new DecompressionStream("gzip"));
    const go = new Go();
    const { instance } = await WebAssembly.instantiate(await new Response(program).arrayBuffer(), go.importObject);
    await go.run(instance);
  } catch (e) {
    failure = String(e);
  }
  if (answered) return;
  const words = last.find(line => /^(fatal error|panic|runtime):/.test(line)) || failure || "it ended without an answer";
  send({
    kind: "failed",
    text: /memory/i.test(words)
      ? `this takes more memory than a page can have (${words}): use the command, sluice forecast, or give a part of the log`
      : `the simulator failed, please report it: ${words}`,
  });
};
