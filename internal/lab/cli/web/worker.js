// Runs in a worker behind Go's wasm_exec.js: one message with the program and a request, then one answer. The page ends the worker.
// That worker has the program hire helpers, workers of its own that run the same program without a request: they play what comes through
// their port, and end with the worker that made them.
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
    globalThis.request = data.request; // of the page
    globalThis.port = data.port; // of a helper
    let module = data.module;
    if (!module) {
      const program = new Blob([data.program]).stream().pipeThrough(new DecompressionStream("gzip"));
      module = await WebAssembly.compile(await new Response(program).arrayBuffer());
    }
    const go = new Go();
    globalThis.hire = heard => helper(module, data.text, message => go.exited || heard(message)); // what is over hears nothing
    await go.run(await WebAssembly.instantiate(module, go.importObject));
  } catch (e) {
    failure = String(e);
  }
  if (answered) return;
  const words = last.find(line => /^(fatal error|panic|runtime):/.test(line)) || failure || "it ended without an answer";
  const text = /memory/i.test(words)
    ? `this takes more memory than a page can have (${words}): use the command, sluice forecast, or give a part of the log`
    : `the simulator failed, please report it: ${words}`;
  if (data.port) data.port.postMessage({ failed: text });
  else send({ kind: "failed", text });
};

// helper makes a helper of the text of a worker and returns the port that leads to it. What comes back, {booked} or {failed}, is told to
// heard, and so is that its script failed.
function helper(module, text, heard) {
  const { port1, port2 } = new MessageChannel();
  const source = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const worker = new Worker(source);
  URL.revokeObjectURL(source);
  port1.onmessage = ({ data }) => heard(data);
  worker.onerror = e => heard({ failed: `the browser could not run the simulator: ${e.message || "one of its workers did not start"}` });
  worker.postMessage({ module, port: port2 }, [port2]);
  return port1;
}
