"use strict";
(() => {
  const at = id => document.getElementById(id);
  const files = []; // those that were chosen, in order
  let worker = null; // runs while an answer is made
  let result = null; // the last answer
  let began = 0;
  let told = ""; // what the status last said aloud

  const size = n => n < 1e5 ? `${Math.ceil(n / 1e3)} kB` : `${(n / 1e6).toFixed(1)} MB`;

  // The status is read aloud when it changes, so it changes with the stage and each quarter; the line beside the bar goes on all the time.
  const say = text => {
    if (text !== told) at("status").textContent = told = text;
  };

  function list() {
    at("files").replaceChildren(...files.map((file, i) => {
      const item = document.createElement("li");
      const remove = document.createElement("button");
      remove.type = "button";
      remove.textContent = "Remove";
      remove.setAttribute("aria-label", `Remove ${file.name}`);
      remove.onclick = () => {
        files.splice(i, 1);
        list();
        at("pick").focus();
      };
      item.append(`${file.name} (${size(file.size)}) `, remove);
      return item;
    }));
    buttons();
  }

  function add(more) {
    for (const file of more) {
      const same = files.findIndex(f => f.name === file.name);
      if (same >= 0) files[same] = file; // chosen again, since it has changed
      else files.push(file);
    }
    list();
    if (more.length) say(`${files.length} ${files.length === 1 ? "file" : "files"} chosen.`);
  }

  function buttons() {
    at("ask").disabled = worker !== null || files.length === 0;
    at("cancel").disabled = worker === null;
    for (const id of ["pick", "gpus", "zone", "days", "grace", "jobs", "quick", "anonymize"]) at(id).disabled = worker !== null;
    for (const button of at("files").querySelectorAll("button")) button.disabled = worker !== null;
    document.body.classList.toggle("running", worker !== null);
    at("progress").hidden = worker === null;
  }

  let program = null; // gzip
  function unpacked() {
    if (program) return program;
    const text = atob(at("program").textContent.trim());
    program = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) program[i] = text.charCodeAt(i);
    return program;
  }

  function start() {
    stop();
    at("wrong").textContent = "";
    at("answer").hidden = true;
    at("shown").removeAttribute("srcdoc");
    result = null;
    began = performance.now();
    const source = URL.createObjectURL(new Blob([at("worker").textContent], { type: "text/javascript" }));
    worker = new Worker(source);
    worker.onmessage = ({ data }) => heard(data);
    worker.onerror = e => failed(`the browser could not run the simulator: ${e.message || "its worker did not start"}`);
    URL.revokeObjectURL(source);
    const flags = {
      gpus: at("gpus").value.trim(), zone: at("zone").value.trim(), days: at("days").value.trim(), grace: at("grace").value.trim(),
      quick: String(at("quick").checked), anonymize: String(at("anonymize").checked),
    };
    const workers = Math.min(8, navigator.hardwareConcurrency || 1); // more would hardly be faster, and each takes memory
    worker.postMessage({
      program: unpacked(), text: at("worker").textContent,
      request: { files: [...files], jobs: at("jobs").files[0] || null, flags, workers },
    });
    buttons();
    at("bar").removeAttribute("value");
    at("step").textContent = "starting";
    say("Starting.");
    at("cancel").focus();
  }

  function stop() {
    if (worker) worker.terminate();
    worker = null;
  }

  function heard(message) {
    const share = message.total ? message.done / message.total : 0;
    const quarter = Math.floor(4 * share) * 25;
    switch (message.kind) {
      case "reading":
        at("bar").value = share;
        at("step").textContent = `reading ${message.name}: ${size(message.done)} of ${size(message.total)}`;
        if (message.done >= message.total) {
          at("bar").removeAttribute("value");
          at("step").textContent = "putting the record in order";
        }
        say(`Reading, ${quarter}%.`);
        break;
      case "playing":
        at("bar").value = share;
        at("step").textContent = `${message.done} of ${message.total} runs, ${Math.round((performance.now() - began) / 1e3)} s`;
        say(`Playing, ${quarter}%.`);
        break;
      case "answered":
        answered(message);
        break;
      case "failed":
        failed(message.text);
    }
  }

  function failed(text) {
    stop();
    buttons();
    say("No answer.");
    at("wrong").textContent = text;
    at("ask").focus();
  }

  function answered(message) {
    stop();
    buttons();
    result = message;
    say(`Done in ${Math.round((performance.now() - began) / 1e3)} s. `);
    const says = document.createElement("span"); // for whoever hears the page; others see it as the answer's first line
    says.className = "heard";
    says.textContent = message.says;
    at("status").append(says);
    at("answer").hidden = false;
    at("shown").srcdoc = message.html;
    at("heading").focus();
  }

  // fit makes the frame as high as the answer, so that the page has one scroll bar.
  function fit() {
    const frame = at("shown");
    if (!result || !frame.contentDocument || !frame.contentDocument.documentElement) return;
    frame.style.height = "0"; // or it would never become lower
    frame.style.height = `${frame.contentDocument.documentElement.scrollHeight + 16}px`;
  }

  function save(name, type, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60e3); // the browser reads it when the user has said where to
  }

  at("pick").onchange = () => {
    add(at("pick").files);
    at("pick").value = "";
  };
  at("form").onsubmit = event => {
    event.preventDefault();
    start();
  };
  at("cancel").onclick = () => {
    stop();
    buttons();
    say("Cancelled.");
    at("ask").focus();
  };
  at("page").onclick = () => save("forecast.html", "text/html", result.html);
  at("json").onclick = () => save("forecast.json", "application/json", result.json);
  at("shown").onload = fit;
  addEventListener("resize", fit);

  // Files may be dropped anywhere; the browser would otherwise open them in the page's place.
  const over = on => event => {
    if (!event.dataTransfer || ![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    document.body.classList.toggle("over", on);
  };
  addEventListener("dragenter", over(true));
  addEventListener("dragover", over(true));
  addEventListener("dragleave", over(false));
  addEventListener("drop", event => {
    over(false)(event);
    if (event.dataTransfer && worker === null) add(event.dataTransfer.files);
  });

  // The command that dumps Slurm's accounting names a month; here it is the one that ends today.
  const day = date => date.toISOString().slice(0, 10);
  const month = new Date();
  month.setUTCMonth(month.getUTCMonth() - 1);
  for (const x of document.querySelectorAll(".to")) x.textContent = day(new Date());
  for (const x of document.querySelectorAll(".from")) x.textContent = day(month);
  if (Intl.supportedValuesOf) {
    at("zones").append(...["UTC", ...Intl.supportedValuesOf("timeZone")].map(zone => {
      const option = document.createElement("option");
      option.value = zone;
      return option;
    }));
  }
  if (typeof WebAssembly === "undefined" || typeof DecompressionStream === "undefined") {
    failed("this browser is too old: it needs WebAssembly and DecompressionStream (Chrome 80, Firefox 113, Safari 16.4 or later)");
  }
  buttons();
})();
