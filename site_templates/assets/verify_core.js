// A trial's evidence to a list of results, each verified, FAILED or not checked. Touches no page, so tests run it too.
"use strict";
var LabauditCheck = (function () {
  var H = typeof LabauditHash !== "undefined" ? LabauditHash : require("./verify_hash.js");
  var VERIFIED = "verified", FAILED = "FAILED", NOT = "not checked";
  var MARK = '"hashchain":{"prev":"', MIDDLE = '","self":"', END = '"},';
  var RUN_ORIGIN = "agent-lab.local/runs/";
  var PAYLOAD_TYPE = "application/vnd.in-toto+json";
  var STATEMENT = "https://in-toto.io/Statement/v1", PROVENANCE = "https://slsa.dev/provenance/v1";

  function result(name, state, detail, event) {
    var made = { name: name, state: state, detail: detail };
    if (event !== undefined) made.event = event;
    return made;
  }

  function bytesOf(value) {
    if (typeof value === "string") return H.utf8(value);
    if (value && typeof value.base64 === "string") return H.fromBase64(value.base64);
    return new Uint8Array(0);
  }

  // RFC 8785: ECMAScript's own number and string forms, keys sorted by UTF-16 code units.
  function canonical(value) {
    if (Array.isArray(value)) return "[" + value.map(canonical).join(",") + "]";
    if (value !== null && typeof value === "object") {
      return "{" + Object.keys(value).sort().map(function (key) {
        return JSON.stringify(key) + ":" + canonical(value[key]);
      }).join(",") + "}";
    }
    return JSON.stringify(value);
  }

  // Parses JSON that must be canonical: duplicate keys, other spellings and loose bytes do not survive the round trip.
  function parse(bytes) {
    var text = H.text(bytes);
    var value = JSON.parse(text);
    if (canonical(value) !== text) throw new Error("is not in canonical form");
    return value;
  }

  function genesis(record) {
    var seed = ["labaudit/events/v1", record.ids.run_id, record.ids.trial_id, record.attempt, record.resolved_digest];
    return H.hex(H.sha256(H.utf8(canonical(seed))));
  }

  // Walks the stored lines; the first that does not fit is named by its place, which is its seq.
  function walkEvents(bytes, record) {
    var prev = genesis(record), count = 0, tree = new H.Tree(), last = "", start = 0;
    var ids = canonical(record.ids);
    while (start < bytes.length) {
      var end = bytes.indexOf(10, start);
      if (end < 0) return { broken: count, why: "the last line has no end" };
      var line = bytes.subarray(start, end), text, event;
      try {
        text = H.text(line);
        event = parse(line);
      } catch (error) {
        return { broken: count, why: "the line " + (error instanceof SyntaxError ? "is no JSON" : error.message) };
      }
      var at = text.indexOf(MARK), middle = at + MARK.length + 64, close = middle + MIDDLE.length + 64;
      if (at < 0 || text.substr(middle, MIDDLE.length) !== MIDDLE || text.substr(close, END.length) !== END) {
        return { broken: count, why: "the line has no hashchain where its canonical form puts it" };
      }
      var body = text.slice(0, at) + text.slice(close + END.length);
      if (text.substr(at + MARK.length, 64) !== prev) return { broken: count, why: "it does not follow the event before" };
      var own = H.hex(H.sha256(H.utf8(prev + "\n" + body)));
      if (text.substr(middle + MIDDLE.length, 64) !== own) return { broken: count, why: "its content does not give its hash" };
      if (event.seq !== count) return { broken: count, why: "its number is " + event.seq };
      if (canonical(event.ids) !== ids || event.attempt !== record.attempt) return { broken: count, why: "it belongs to another trial" };
      tree.add(H.leaf(line));
      last = event.event_type;
      prev = own;
      count++;
      start = end + 1;
    }
    return { count: count, size: bytes.length, head: prev, sha256: H.hex(H.sha256(bytes)), tree_root: H.hex(tree.root()), last: last };
  }

  function checkEvents(bytes, record) {
    var name = "event chain";
    if (record.events === null) {
      return [result(name, bytes.length ? FAILED : NOT, bytes.length ? "the record knows no event log, yet there is one" : "the record says that this trial left no event log")];
    }
    var walked = walkEvents(bytes, record);
    if (walked.broken !== undefined) return [result(name, FAILED, "broken at event " + walked.broken + ": " + walked.why, walked.broken)];
    if (walked.last !== "trial.sealed") return [result(name, FAILED, "the log does not end with trial.sealed: it was cut or grown", walked.count)];
    var differing = ["count", "size", "sha256", "head", "tree_root"].filter(function (key) { return walked[key] !== record.events[key]; });
    if (differing.length) return [result(name, FAILED, "the log is not the one in the trial's record: " + differing.join(", ") + " differ", walked.count)];
    return [result(name, VERIFIED, walked.count + " events, each with the hash of the one before; head " + walked.head.slice(0, 16))];
  }

  function checkInclusion(recordBytes, index, path, tree) {
    var name = "place in the run tree";
    try {
      var nodes = path.map(H.fromHex);
      if (H.included(H.leaf(recordBytes), index, tree.size, nodes, H.fromHex(tree.root))) {
        return result(name, VERIFIED, "record " + index + " of " + tree.size + " under root " + tree.root.slice(0, 16));
      }
    } catch (error) { return result(name, FAILED, error.message); }
    return result(name, FAILED, "the record does not lead to the root of the run tree");
  }

  function readBundle(bytes) {
    var bundle = parse(bytes);
    var envelope = bundle.dsseEnvelope;
    if (!envelope || !Array.isArray(envelope.signatures) || envelope.signatures.length !== 1) throw new Error("holds not exactly one signature");
    var payload = H.fromBase64(envelope.payload);
    return {
      payload: payload, type: envelope.payloadType, keyid: envelope.signatures[0].keyid || "",
      signature: H.fromBase64(envelope.signatures[0].sig), statement: parse(payload),
      keyless: !(bundle.verificationMaterial && bundle.verificationMaterial.publicKey)
    };
  }

  function inner(statement) {
    var definition = statement.predicate && statement.predicate.buildDefinition;
    return (definition && definition.internalParameters) || {};
  }

  function checkStatement(bundle, manifestBytes, tree) {
    var name = "signed statement", statement = bundle.statement;
    if (bundle.type !== PAYLOAD_TYPE || statement._type !== STATEMENT || statement.predicateType !== PROVENANCE) {
      return result(name, FAILED, "it is no run statement of the expected type");
    }
    if (manifestBytes) {
      var subject = statement.subject, wanted = H.hex(H.sha256(manifestBytes));
      if (!Array.isArray(subject) || subject.length !== 1 || subject[0].name !== "manifest.json" || subject[0].digest.sha256 !== wanted) {
        return result(name, FAILED, "it is about another manifest than sha256:" + wanted.slice(0, 16));
      }
    }
    if (canonical(inner(statement).run_tree) !== canonical(tree)) return result(name, FAILED, "it names another run tree");
    return result(name, VERIFIED, manifestBytes ? "it is about this manifest and names this run tree" : "it names this run tree");
  }

  function pae(type, payload) {
    return H.concat([H.utf8("DSSEv1 " + H.utf8(type).length + " " + type + " " + payload.length + " "), payload]);
  }

  // DER to the fixed 64 bytes that WebCrypto wants.
  function rawSignature(der) {
    if (der[0] !== 0x30 || der[1] !== der.length - 2 || der.length > 72) throw new Error("the signature is no DER sequence");
    var out = new Uint8Array(64), at = 2;
    for (var part = 0; part < 2; part++) {
      if (der[at] !== 2) throw new Error("the signature holds no integer");
      var size = der[at + 1], number = der.subarray(at + 2, at + 2 + size);
      if (size === 0 || number.length !== size || number[0] & 0x80 || (size > 1 && number[0] === 0 && !(number[1] & 0x80))) throw new Error("the signature's integers are not minimal");
      if (number[0] === 0) number = number.subarray(1);
      if (number.length > 32) throw new Error("the signature's integers are too long");
      out.set(number, 32 * (part + 1) - number.length);
      at += 2 + size;
    }
    if (at !== der.length) throw new Error("the signature has bytes at its end");
    return out;
  }

  function readPem(text) {
    var match = /^\s*-----BEGIN PUBLIC KEY-----([A-Za-z0-9+\/=\s]+)-----END PUBLIC KEY-----\s*$/.exec(text);
    if (!match) throw new Error("this is no PEM public key");
    var spki = H.fromBase64(match[1].replace(/\s+/g, ""));
    if (H.hex(spki.subarray(0, 27)) !== "3059301306072a8648ce3d020106082a8648ce3d03010703420004" || spki.length !== 91) throw new Error("this is no P-256 public key");
    return spki;
  }

  // The fingerprint that ssh-keygen -l prints, by which people compare keys.
  function fingerprint(spki) {
    function field(bytes) { return H.concat([new Uint8Array([0, 0, 0, bytes.length]), bytes]); }
    var blob = H.concat([field(H.utf8("ecdsa-sha2-nistp256")), field(H.utf8("nistp256")), field(spki.subarray(26))]);
    return "SHA256:" + H.toBase64(H.sha256(blob)).replace(/=+$/, "");
  }

  function verifies(subtle, spki, bundle) {
    var raw;
    try { raw = rawSignature(bundle.signature); } catch (error) { return Promise.resolve(false); }
    return subtle.importKey("spki", spki, { name: "ECDSA", namedCurve: "P-256" }, false, ["verify"]).then(function (key) {
      return subtle.verify({ name: "ECDSA", hash: "SHA-256" }, key, raw, pae(bundle.type, bundle.payload));
    });
  }

  function checkSignature(bundle, readerKey, subtle) {
    var name = "signature";
    if (bundle.keyless) return Promise.resolve(result(name, NOT, "signed with a Sigstore identity: labaudit verify --identity checks it"));
    if (!subtle) return Promise.resolve(result(name, NOT, "this page has no WebCrypto (plain http on another host): open it by https, from localhost or from a file"));
    var own, given;
    try { given = readerKey ? readPem(readerKey) : null; } catch (error) { return Promise.resolve(result(name, NOT, "the key that you gave cannot be used: " + error.message)); }
    try { own = readPem(inner(bundle.statement).layout_key || ""); } catch (error) { own = null; }
    var key = given || own;
    if (!key) return Promise.resolve(result(name, NOT, "no key was given and the run names none"));
    return verifies(subtle, key, bundle).then(function (fits) {
      var print = fingerprint(key);
      if (given) {
        if (fits) return result(name, VERIFIED, "valid under the key that you gave, " + print);
        return result(name, FAILED, "not made with the key that you gave, " + print);
      }
      if (!fits) return result(name, FAILED, "does not fit the key that the run itself names, " + print);
      return result(name, NOT, "valid under key " + print + ", which this site supplied: give a key that you trust");
    });
  }

  function parseCheckpoint(bytes) {
    var lines = H.text(bytes).split("\n");
    if (lines.length !== 6 || lines[3] !== "" || lines[5] !== "" || !/^(0|[1-9][0-9]{0,15})$/.test(lines[1])) throw new Error("is no checkpoint");
    var parts = lines[4].split(" ");
    if (parts.length !== 3 || parts[0] !== "\u2014") throw new Error("has no signature line");
    var signature = H.fromBase64(parts[2]);
    if (signature.length !== 68) throw new Error("has no Ed25519 signature");
    return { origin: lines[0], size: Number(lines[1]), root: H.hex(H.fromBase64(lines[2])), name: parts[1], keyHash: signature.subarray(0, 4), signature: signature.subarray(4), text: H.utf8(lines.slice(0, 3).join("\n") + "\n") };
  }

  function checkCheckpoint(bytes, runId, tree, logKey, subtle) {
    var name = "checkpoint", head;
    if (!bytes || !bytes.length) return Promise.resolve(result(name, NOT, "there is none"));
    try { head = parseCheckpoint(bytes); } catch (error) { return Promise.resolve(result(name, FAILED, "it " + error.message)); }
    if (head.origin !== RUN_ORIGIN + runId) return Promise.resolve(result(name, FAILED, "it is another run's"));
    if (head.size !== tree.size || head.root !== tree.root) return Promise.resolve(result(name, FAILED, "its tree is not the manifest's"));
    var key = /^(\S+)\+([0-9a-f]{8})\+(\S+)$/.exec(logKey || "");
    if (!key) return Promise.resolve(result(name, NOT, "size and root fit; the run statement names no log key"));
    var raw;
    try { raw = H.fromBase64(key[3]); } catch (error) { return Promise.resolve(result(name, FAILED, "the log key cannot be read")); }
    var short = H.hex(H.sha256(H.concat([H.utf8(key[1] + "\n"), raw])).subarray(0, 4));
    if (key[1] !== head.name || short !== key[2] || H.hex(head.keyHash) !== short || raw.length !== 33 || raw[0] !== 1) return Promise.resolve(result(name, FAILED, "the log key in the run statement did not sign it"));
    if (!subtle) return Promise.resolve(result(name, NOT, "size and root fit; its signature needs WebCrypto"));
    return subtle.importKey("raw", raw.subarray(1), { name: "Ed25519" }, false, ["verify"]).then(function (imported) {
      return subtle.verify({ name: "Ed25519" }, imported, head.signature, head.text).then(function (fits) {
        return fits ? result(name, VERIFIED, "signed by the log key that the run statement names; " + head.size + " records") : result(name, FAILED, "the log key in the run statement did not sign it");
      });
    }, function () { return result(name, NOT, "size and root fit; this browser has no Ed25519"); });
  }

  // What a signature is worth decides what rests on it: with an unchecked one the statement is only consistent.
  function overall(results) {
    if (results.some(function (one) { return one.state === FAILED; })) return FAILED;
    return results.every(function (one) { return one.state === VERIFIED; }) ? VERIFIED : NOT;
  }

  // run: {run_id, manifest, bundle?, checkpoint?}; trial: {index, record, events?, path}.
  function checkTrial(run, trialId, trial, readerKey, subtle) {
    var results = [], recordBytes, record, manifestBytes, manifest, bundle = null;
    try {
      recordBytes = bytesOf(trial.record);
      record = parse(recordBytes);
      if (record.ids.trial_id !== trialId || record.ids.run_id !== run.run_id || record.index !== trial.index) throw new Error("belongs to another trial");
    } catch (error) { return Promise.resolve([result("trial record", FAILED, "it " + error.message)]); }
    results = results.concat(checkEvents(bytesOf(trial.events || ""), record));
    try {
      manifestBytes = bytesOf(run.manifest);
      manifest = parse(manifestBytes);
      if (manifest.run_id !== run.run_id || manifest.resolved_digest !== record.resolved_digest) throw new Error("belongs to another run or plan");
    } catch (error) { return Promise.resolve(results.concat([result("manifest", FAILED, "it " + error.message)])); }
    results.push(checkInclusion(recordBytes, trial.index, trial.path, manifest.run_tree));
    if (run.bundle) {
      try { bundle = readBundle(bytesOf(run.bundle)); } catch (error) { results.push(result("signed statement", FAILED, "it " + error.message)); }
    }
    return finish(results, bundle, run, manifestBytes, manifest.run_tree, readerKey, subtle);
  }

  function finish(results, bundle, run, manifestBytes, tree, readerKey, subtle) {
    if (!run.bundle) results.push(result("signature", NOT, "nobody signed this run"));
    if (bundle) results.push(checkStatement(bundle, manifestBytes, tree));
    var logKey = bundle ? inner(bundle.statement).log_key : null;
    return checkCheckpoint(run.checkpoint ? bytesOf(run.checkpoint) : null, run.run_id, tree, logKey, subtle).then(function (one) {
      results.push(one);
      return bundle ? checkSignature(bundle, readerKey, subtle) : null;
    }).then(function (one) { return one ? results.concat([one]) : results; });
  }

  // A C2SP tlog-proof: the record, its path, the checkpoint and the run statement, without the events.
  function checkProof(bytes, readerKey, subtle) {
    var head, note, record, recordBytes, bundle, index, path, results = [];
    try {
      var text = H.text(bytes), cut = text.indexOf("\n\n"), lines = text.slice(0, cut).split("\n");
      if (cut < 0 || lines[0] !== "c2sp.org/tlog-proof@v1" || lines[1].slice(0, 6) !== "extra " || !/^index (0|[1-9][0-9]{0,15})$/.test(lines[2])) throw new Error("is no tlog-proof");
      note = H.utf8(text.slice(cut + 2));
      head = parseCheckpoint(note);
      index = Number(lines[2].slice(6));
      path = lines.slice(3).map(function (line) { return H.hex(H.fromBase64(line)); });
      var extra = parse(H.fromBase64(lines[1].slice(6)));
      recordBytes = H.utf8(canonical(extra.trial_record));
      record = extra.trial_record;
      bundle = readBundle(H.utf8(canonical(extra.run)));
    } catch (error) { return Promise.resolve({ trial: "", results: [result("proof", FAILED, "it " + error.message)] }); }
    var tree = { root: head.root, size: head.size };
    results.push(result("event chain", NOT, "a proof holds no events"));
    results.push(record.index === index ? checkInclusion(recordBytes, index, path, tree) : result("place in the run tree", FAILED, "the record has another index"));
    var run = { run_id: record.ids.run_id, bundle: true, checkpoint: { base64: H.toBase64(note) } };
    return finish(results, bundle, run, null, tree, readerKey, subtle).then(function (all) { return { trial: record.ids.trial_id, results: all }; });
  }

  return {
    VERIFIED: VERIFIED, FAILED: FAILED, NOT: NOT, result: result, bytesOf: bytesOf, canonical: canonical, parse: parse, walkEvents: walkEvents,
    checkEvents: checkEvents, checkInclusion: checkInclusion, readBundle: readBundle, checkStatement: checkStatement,
    checkSignature: checkSignature, checkCheckpoint: checkCheckpoint, checkTrial: checkTrial, checkProof: checkProof,
    overall: overall, fingerprint: fingerprint, readPem: readPem, inner: inner
  };
})();
if (typeof module !== "undefined") module.exports = LabauditCheck;
