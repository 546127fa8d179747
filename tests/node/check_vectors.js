// Reads test vectors (JSON on stdin) and prints what the site's own scripts answer, one JSON line per vector.
"use strict";
const path = require("node:path");
const { webcrypto } = require("node:crypto");
const assets = process.argv[2];
const H = require(path.join(assets, "verify_hash.js"));
const C = require(path.join(assets, "verify_core.js"));
const Z = require(path.join(assets, "verify_zip.js"));

async function answer(vector) {
  const subtle = vector.subtle === false ? null : webcrypto.subtle;
  if (vector.kind === "sha256") return vector.data.map((hex) => H.hex(H.sha256(H.fromHex(hex))));
  if (vector.kind === "tree") {
    const tree = new H.Tree();
    return vector.leaves.map((hex) => { tree.add(H.leaf(H.fromHex(hex))); return H.hex(tree.root()); });
  }
  if (vector.kind === "inclusion") {
    return vector.proofs.map((p) => H.included(H.leaf(H.fromHex(p.leaf)), p.index, p.size, p.path.map(H.fromHex), H.fromHex(p.root)));
  }
  if (vector.kind === "canonical") return vector.texts.map((text) => C.canonical(JSON.parse(text)));
  if (vector.kind === "keyid") return C.fingerprint(C.readPem(vector.pem));
  let results;
  if (vector.kind === "trial") results = await C.checkTrial(vector.run, vector.name, vector.trial, vector.key || "", subtle);
  else if (vector.kind === "proof") results = (await C.checkProof(H.fromBase64(vector.bytes), vector.key || "", subtle)).results;
  else results = (await Z.checkBundle(H.fromBase64(vector.bytes), vector.key || "", subtle)).results;
  return { overall: C.overall(results), results };
}

let input = "";
process.stdin.on("data", (part) => { input += part; });
process.stdin.on("end", async () => {
  for (const vector of JSON.parse(input)) console.log(JSON.stringify(await answer(vector)));
});
