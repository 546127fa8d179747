// The page around the check: takes a data file of this site or a dropped file, a key from the reader, and shows results.
"use strict";
(function () {
  var C = LabauditCheck;
  var target = null, waiting = null, ticket = 0;
  var ADDRESS = /^((?:runs\/[A-Za-z0-9._-]+\/)?data\/check-[0-9]{3,}\.js):([A-Za-z0-9._-]+)$/;

  function by(id) { return document.getElementById(id); }
  function subtle() { return window.isSecureContext && window.crypto && crypto.subtle ? crypto.subtle : null; }
  function cell(row, text, tag) { var made = document.createElement(tag || "td"); made.textContent = text; row.appendChild(made); return made; }

  // Data files call this; only the one that was asked for is taken.
  window.labauditData = function (name, value) { if (waiting) { var done = waiting; waiting = null; done(name, value); } };

  function say(text) { by("status").textContent = text; }

  function load() {
    var address = location.hash.slice(1);
    try { address = decodeURIComponent(address); } catch (error) { address = "?"; }
    var match = ADDRESS.exec(address);
    if (!match) { if (location.hash.length > 1) say("The address names no trial of this site."); return; }
    say("Loading the evidence of " + match[2] + " ...");
    waiting = function (name, value) {
      var trial = value && value.trials && value.trials[match[2]];
      if (!trial) { say("The data file holds no trial of that name."); return; }
      target = { kind: "trial", name: match[2], run: value.run, trial: trial };
      check();
    };
    var script = document.createElement("script");
    script.src = match[1];
    script.addEventListener("error", function () { waiting = null; say("The data file could not be loaded, so nothing was checked."); });
    script.addEventListener("load", function () { if (waiting) { waiting = null; say("The data file is damaged, so nothing was checked."); } });
    document.body.appendChild(script);
  }

  function check() {
    if (!target) return;
    var mine = ++ticket, key = by("key").value.trim(), job;
    say("Checking ...");
    if (target.kind === "trial") job = C.checkTrial(target.run, target.name, target.trial, key, subtle()).then(function (results) { return { title: "Trial " + target.name, results: results, command: "labaudit verify RUN-FOLDER --key publisher.pub" }; });
    else if (target.kind === "proof") job = C.checkProof(target.bytes, key, subtle()).then(function (done) { return { title: "Proof of trial " + (done.trial || target.name), results: done.results, command: "labaudit verify " + target.name + " --key publisher.pub" }; });
    else job = LabauditZip.checkBundle(target.bytes, key, subtle()).then(function (done) { return { title: "Bundle of " + (done.run || target.name), results: done.results, command: "labaudit verify " + target.name + " --key publisher.pub" }; });
    job.then(function (done) { if (mine === ticket) show(done); }, function (error) { say("The check could not be finished: " + error.message + ". Nothing is established."); });
  }

  function show(done) {
    var body = by("results");
    body.textContent = "";
    done.results.forEach(function (one) {
      var row = document.createElement("tr");
      cell(row, one.name, "th").scope = "row";
      var state = document.createElement("span");
      state.className = "state is-" + one.state.replace(" ", "_");
      state.textContent = one.state;
      row.appendChild(document.createElement("td")).appendChild(state);
      cell(row, one.detail);
      body.appendChild(row);
    });
    var all = C.overall(done.results);
    by("target").textContent = done.title;
    by("overall").textContent = all;
    by("overall").className = "state is-" + all.replace(" ", "_");
    by("meaning").textContent = all === C.VERIFIED ? "Everything listed here holds under the key that you gave."
      : all === C.FAILED ? "Something does not hold. Do not use this evidence." : "What was checked holds; the lines marked not checked establish nothing.";
    by("command").textContent = done.command;
    by("answer").hidden = false;
    say(done.title + ": " + all);
  }

  function take(file) {
    target = null;
    by("answer").hidden = true;
    say("Reading " + file.name + " ...");
    file.arrayBuffer().then(function (buffer) {
      var bytes = new Uint8Array(buffer), start = String.fromCharCode.apply(null, bytes.subarray(0, 22));
      if (start.slice(0, 2) === "PK") target = { kind: "zip", name: file.name, bytes: bytes };
      else if (start === "c2sp.org/tlog-proof@v1") target = { kind: "proof", name: file.name, bytes: bytes };
      else if (start.slice(0, 13) === "labauditData(") return fromShard(bytes);
      else { say("This is no bundle (.zip), proof (.tlog-proof) or data file (check-000.js)."); return null; }
      return check();
    });
  }

  // A data file of any site, read as data and never run.
  function fromShard(bytes) {
    var text = LabauditHash.text(bytes), cut = text.indexOf(","), value;
    try { value = JSON.parse(text.slice(cut + 1, text.lastIndexOf(")"))); } catch (error) { say("The data file is damaged, so nothing was checked."); return; }
    var names = Object.keys(value.trials || {}), choice = by("choice"), list = by("trial");
    list.textContent = "";
    names.forEach(function (name) { var option = document.createElement("option"); option.textContent = name; list.appendChild(option); });
    choice.hidden = names.length < 2;
    function choose() { target = { kind: "trial", name: list.value, run: value.run, trial: value.trials[list.value] }; check(); }
    list.onchange = choose;
    if (names.length) choose(); else say("The data file holds no trial.");
  }

  by("tool").hidden = false;
  by("secure").textContent = subtle() ? "Signatures can be checked here." : "This page was opened over plain http from another host, where browsers offer no cryptography: chain and tree are checked, signatures are not.";
  by("check").addEventListener("click", check);
  by("file").addEventListener("change", function () { if (this.files[0]) take(this.files[0]); });
  by("keyfile").addEventListener("change", function () { if (this.files[0]) this.files[0].text().then(function (text) { by("key").value = text; check(); }); });
  var drop = by("drop");
  drop.addEventListener("dragover", function (event) { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", function () { drop.classList.remove("over"); });
  drop.addEventListener("drop", function (event) { event.preventDefault(); drop.classList.remove("over"); if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]); });
  window.addEventListener("hashchange", load);
  load();
})();
