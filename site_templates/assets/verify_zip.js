// A run's zip (labaudit bundle) to results: every file against its list, every trial's chain, the tree, the signatures.
"use strict";
var LabauditZip = (function () {
  var H = typeof LabauditHash !== "undefined" ? LabauditHash : require("./verify_hash.js");
  var C = typeof LabauditCheck !== "undefined" ? LabauditCheck : require("./verify_core.js");
  var LARGEST = 512 * 1024 * 1024;

  // The members of a zip by path below its one folder. Reads the central directory only, and refuses what is ambiguous.
  function readZip(bytes) {
    var view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), end = -1;
    for (var at = bytes.length - 22; at >= 0 && at > bytes.length - 22 - 65536; at--) if (view.getUint32(at, true) === 0x06054b50) { end = at; break; }
    if (end < 0) throw new Error("is no zip file");
    var count = view.getUint16(end + 10, true), place = view.getUint32(end + 16, true), files = new Map(), jobs = [], total = 0;
    if (count === 0xffff || place === 0xffffffff) throw new Error("is too large for this page: use labaudit verify");
    for (var number = 0; number < count; number++) {
      if (place + 46 > bytes.length || view.getUint32(place, true) !== 0x02014b50) throw new Error("has a broken directory");
      var flags = view.getUint16(place + 8, true), method = view.getUint16(place + 10, true);
      var packed = view.getUint32(place + 20, true), size = view.getUint32(place + 24, true);
      var nameSize = view.getUint16(place + 28, true), local = view.getUint32(place + 42, true);
      var name = H.text(bytes.subarray(place + 46, place + 46 + nameSize));
      if (flags & 1) throw new Error("is encrypted");
      if (files.has(name)) throw new Error("names a file twice: " + name);
      if (name.split("/").indexOf("..") >= 0 || name[0] === "/") throw new Error("names a path outside itself: " + name);
      if ((total += size) > LARGEST) throw new Error("is too large for this page: use labaudit verify");
      if (view.getUint32(local, true) !== 0x04034b50) throw new Error("has a broken member: " + name);
      var start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
      jobs.push(unpack(files, name, bytes.subarray(start, start + packed), method, size));
      files.set(name, null);
      place += 46 + nameSize + view.getUint16(place + 30, true) + view.getUint16(place + 32, true);
    }
    return Promise.all(jobs).then(function () { return withoutFolder(files); });
  }

  function unpack(files, name, data, method, size) {
    if (method === 0) { files.set(name, data); return Promise.resolve().then(function () { keep(files, name, data, size); }); }
    if (method !== 8 || typeof DecompressionStream === "undefined") return Promise.reject(new Error("uses a compression that this page cannot read"));
    var stream = new Blob([data]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Response(stream).arrayBuffer().then(function (buffer) { keep(files, name, new Uint8Array(buffer), size); });
  }

  function keep(files, name, data, size) {
    if (data.length !== size) throw new Error("holds a member of another size than it says: " + name);
    files.set(name, data);
  }

  function withoutFolder(files) {
    var found = new Map(), folder = null;
    files.forEach(function (data, name) {
      if (name.slice(-1) === "/") return;
      var cut = name.indexOf("/"), first = name.slice(0, cut);
      if (cut < 0 || (folder !== null && folder !== first)) throw new Error("does not hold one run folder");
      folder = first;
      found.set(name.slice(cut + 1), data);
    });
    return found;
  }

  // All results over one bundle, the trials folded into few lines.
  function checkBundle(bytes, readerKey, subtle) {
    var zip;
    try { zip = readZip(bytes); } catch (error) { zip = Promise.reject(error); }
    return zip.then(function (files) { return checkFiles(files, readerKey, subtle); }, function (error) {
      return { run: "", results: [C.result("zip file", C.FAILED, "it " + error.message)] };
    });
  }

  function checkFiles(files, readerKey, subtle) {
    var results = [], manifestBytes = files.get("manifest.json"), manifest, bundle = null;
    try {
      if (!manifestBytes) throw new Error("is missing");
      manifest = C.parse(manifestBytes);
    } catch (error) { return { run: "", results: [C.result("manifest", C.FAILED, "it " + error.message)] }; }
    var seen = new Set(["manifest.json"]);
    results.push(checkListed(files, manifest.files, "", seen, "run-level files"));
    results = results.concat(checkTrials(files, manifest, seen));
    results.push(nothingExtra(files, seen));
    var data = files.get("attestations/run.sigstore.json");
    if (data) try { bundle = C.readBundle(data); } catch (error) { results.push(C.result("signed statement", C.FAILED, "it " + error.message)); }
    results = results.concat(otherStatements(files, manifestBytes));
    return tail(results, bundle, files, manifestBytes, manifest, readerKey, subtle);
  }

  function tail(results, bundle, files, manifestBytes, manifest, readerKey, subtle) {
    if (!files.has("attestations/run.sigstore.json")) results.push(C.result("signature", C.NOT, "nobody signed this run"));
    if (bundle) results.push(C.checkStatement(bundle, manifestBytes, manifest.run_tree));
    var logKey = bundle ? C.inner(bundle.statement).log_key : null;
    return C.checkCheckpoint(files.get("attestations/checkpoint"), manifest.run_id, manifest.run_tree, logKey, subtle).then(function (one) {
      results.push(one);
      return bundle ? signatures(files, bundle, readerKey, subtle) : [];
    }).then(function (more) { return { run: manifest.run_id, results: results.concat(more) }; });
  }

  function checkListed(files, listed, prefix, seen, name) {
    for (var i = 0; i < listed.length; i++) {
      var path = prefix + listed[i].path, data = files.get(path);
      seen.add(path);
      if (!data) return C.result(name, C.FAILED, path + " is listed and missing");
      if (data.length !== listed[i].size || H.hex(H.sha256(data)) !== listed[i].sha256) return C.result(name, C.FAILED, path + " is not the file that was sealed");
    }
    return C.result(name, C.VERIFIED, listed.length + " files have their digests");
  }

  function checkTrials(files, manifest, seen) {
    var schedule = files.get("schedule.jsonl"), tree = new H.Tree(), events = 0, count = 0, results = [];
    if (!schedule) return [C.result("trials", C.FAILED, "schedule.jsonl is missing")];
    var lines = H.text(schedule).split("\n").filter(Boolean);
    for (var i = 0; i < lines.length; i++) {
      var trialId = JSON.parse(lines[i]).trial_id, prefix = "trials/" + trialId + "/", data = files.get(prefix + "trial_record.json"), record;
      seen.add(prefix + "trial_record.json");
      try {
        if (!data) throw new Error("is missing");
        record = C.parse(data);
        if (record.ids.trial_id !== trialId || record.index !== i || record.ids.run_id !== manifest.run_id) throw new Error("belongs to another trial");
      } catch (error) { results.push(C.result("trial " + trialId, C.FAILED, "its record " + error.message)); continue; }
      tree.add(H.leaf(data));
      var one = checkListed(files, record.files, prefix, seen, "trial " + trialId);
      if (one.state === C.FAILED) results.push(one);
      var chain = C.checkEvents(files.get(prefix + "events.jsonl") || new Uint8Array(0), record)[0];
      if (chain.state === C.FAILED) { chain.name = "trial " + trialId; results.push(chain); }
      one = artifacts(files, files.get(prefix + "artifacts.jsonl"), seen, "trial " + trialId);
      if (one) results.push(one);
      if (record.events) events += record.events.count;
      count++;
    }
    var run = artifacts(files, files.get("artifacts.jsonl"), seen, "artifacts");
    if (run) results.push(run);
    if (!results.length) results.push(C.result("trials", C.VERIFIED, count + " trials, their files and artifacts; " + events + " events, each with the hash of the one before"));
    var root = H.hex(tree.root());
    results.push(root === manifest.run_tree.root && tree.size === manifest.run_tree.size ? C.result("run tree", C.VERIFIED, "all " + count + " records give the root " + root.slice(0, 16)) : C.result("run tree", C.FAILED, "the trial records do not give the root of the run tree"));
    return results;
  }

  function artifacts(files, list, seen, name) {
    if (!list) return null;
    var lines = H.text(list).split("\n").filter(Boolean);
    for (var i = 0; i < lines.length; i++) {
      var item = JSON.parse(lines[i]), hex = item.ref.slice(-64), path = "artifacts/sha256/" + hex, meta = "artifacts/meta/" + hex + ".json";
      if (seen.has(path)) continue;
      seen.add(path);
      seen.add(meta);
      if (!files.get(path) || H.hex(H.sha256(files.get(path))) !== hex) return C.result(name, C.FAILED, path + " is missing or not what its name says");
      if (!files.get(meta) || H.hex(H.sha256(files.get(meta))) !== item.meta_sha256) return C.result(name, C.FAILED, meta + " is missing or not the file that was sealed");
    }
    return null;
  }

  function nothingExtra(files, seen) {
    var extra = null, count = 0;
    files.forEach(function (data, path) {
      if (path.slice(0, 13) === "attestations/") return;
      count++;
      if (extra === null && !seen.has(path)) extra = path;
    });
    return extra === null ? C.result("nothing extra", C.VERIFIED, "all " + count + " files are listed") : C.result("nothing extra", C.FAILED, extra + " is listed nowhere");
  }

  function otherStatements(files, manifestBytes) {
    var wanted = H.hex(H.sha256(manifestBytes)), bad = null, count = 0;
    files.forEach(function (data, path) {
      if (!/^attestations\/[^\/]+\.sigstore\.json$/.test(path)) return;
      count++;
      try {
        var subject = C.readBundle(data).statement.subject;
        if (subject.length !== 1 || subject[0].digest.sha256 !== wanted) throw new Error("is about something else");
      } catch (error) { bad = bad || path + " " + error.message; }
    });
    if (bad) return [C.result("statements", C.FAILED, bad)];
    return count ? [C.result("statements", C.VERIFIED, count + " statements are about this manifest")] : [];
  }

  function signatures(files, first, readerKey, subtle) {
    var jobs = [C.checkSignature(first, readerKey, subtle)];
    files.forEach(function (data, path) {
      if (!/^attestations\/[^\/]+\.sigstore\.json$/.test(path) || path === "attestations/run.sigstore.json") return;
      var bundle;
      try { bundle = C.readBundle(data); } catch (error) { return; }
      // All statements are checked with one key: the reader's, else the one that the run statement names.
      var named = { type: bundle.type, payload: bundle.payload, signature: bundle.signature, keyless: bundle.keyless, statement: first.statement };
      jobs.push(C.checkSignature(named, readerKey, subtle).then(function (one) { one.name = "signature of " + path.slice(13, -14); return one; }));
    });
    return Promise.all(jobs);
  }

  return { readZip: readZip, checkBundle: checkBundle };
})();
if (typeof module !== "undefined") module.exports = LabauditZip;
