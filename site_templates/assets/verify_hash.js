// Bytes to SHA-256, text and back. Own code, so that it also runs where a browser offers no WebCrypto.
"use strict";
var LabauditHash = (function () {
  var K = new Uint32Array(64);
  var START = new Uint32Array(8);

  // The constants are the first 32 bits of the fractional parts of roots of primes; computed, so nothing can be mistyped.
  (function () {
    function fraction(value) { return ((value - Math.floor(value)) * 4294967296) >>> 0; }
    var found = 0;
    for (var candidate = 2; found < 64; candidate++) {
      var prime = true;
      for (var divisor = 2; divisor * divisor <= candidate; divisor++) if (candidate % divisor === 0) { prime = false; break; }
      if (!prime) continue;
      if (found < 8) START[found] = fraction(Math.sqrt(candidate));
      K[found++] = fraction(Math.cbrt(candidate));
    }
  })();

  function sha256(bytes) {
    var state = Uint32Array.from(START);
    var w = new Uint32Array(64);
    var whole = bytes.length - (bytes.length % 64);
    for (var at = 0; at < whole; at += 64) block(state, w, bytes, at);
    var tail = new Uint8Array(bytes.length - whole < 56 ? 64 : 128);
    tail.set(bytes.subarray(whole));
    tail[bytes.length - whole] = 0x80;
    var view = new DataView(tail.buffer);
    view.setUint32(tail.length - 8, Math.floor(bytes.length / 0x20000000));
    view.setUint32(tail.length - 4, (bytes.length << 3) >>> 0);
    for (at = 0; at < tail.length; at += 64) block(state, w, tail, at);
    var out = new Uint8Array(32);
    var result = new DataView(out.buffer);
    for (var i = 0; i < 8; i++) result.setUint32(4 * i, state[i]);
    return out;
  }

  function block(state, w, bytes, at) {
    var i, s0, s1;
    for (i = 0; i < 16; i++, at += 4) w[i] = (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
    for (i = 16; i < 64; i++) {
      s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >>> 3);
      s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >>> 10);
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
    }
    var a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
    for (i = 0; i < 64; i++) {
      s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      var t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i] + w[i]) | 0;
      s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      var t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g; g = f; f = e; e = (d + t1) | 0; d = c; c = b; b = a; a = (t1 + t2) | 0;
    }
    state[0] += a; state[1] += b; state[2] += c; state[3] += d;
    state[4] += e; state[5] += f; state[6] += g; state[7] += h;
  }

  function rotate(word, count) { return (word >>> count) | (word << (32 - count)); }

  function hex(bytes) {
    var text = "";
    for (var i = 0; i < bytes.length; i++) text += (bytes[i] < 16 ? "0" : "") + bytes[i].toString(16);
    return text;
  }

  function fromHex(text) {
    if (!/^([0-9a-f]{2})*$/.test(text)) throw new Error("is no hex");
    var out = new Uint8Array(text.length / 2);
    for (var i = 0; i < out.length; i++) out[i] = parseInt(text.substr(2 * i, 2), 16);
    return out;
  }

  function concat(parts) {
    var size = parts.reduce(function (sum, part) { return sum + part.length; }, 0);
    var out = new Uint8Array(size), at = 0;
    parts.forEach(function (part) { out.set(part, at); at += part.length; });
    return out;
  }

  function utf8(text) { return new TextEncoder().encode(text); }

  function text(bytes) { return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes); }

  // Strict base64: it must encode back to the same characters.
  function fromBase64(value) {
    var raw = atob(value);
    if (btoa(raw) !== value) throw new Error("base64 is not in its one canonical form");
    var out = new Uint8Array(raw.length);
    for (var i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
    return out;
  }

  function toBase64(bytes) {
    var raw = "";
    for (var i = 0; i < bytes.length; i++) raw += String.fromCharCode(bytes[i]);
    return btoa(raw);
  }

  function leaf(bytes) { return sha256(concat([new Uint8Array([0]), bytes])); }

  function node(left, right) { return sha256(concat([new Uint8Array([1]), left, right])); }

  // RFC 6962 root over leaf hashes, in memory that grows with the logarithm of their number.
  function Tree() { this.size = 0; this.stack = []; }
  Tree.prototype.add = function (digest) {
    for (var size = this.size; size & 1; size = Math.floor(size / 2)) digest = node(this.stack.pop(), digest);
    this.stack.push(digest);
    this.size++;
  };
  Tree.prototype.root = function () {
    if (!this.stack.length) return sha256(new Uint8Array(0));
    var digest = this.stack[this.stack.length - 1];
    for (var i = this.stack.length - 2; i >= 0; i--) digest = node(this.stack[i], digest);
    return digest;
  };

  // RFC 9162 2.1.3.2.
  function included(digest, index, size, path, root) {
    if (!(index >= 0 && index < size)) return false;
    var fn = index, sn = size - 1, result = digest;
    for (var i = 0; i < path.length; i++) {
      if (sn === 0 || path[i].length !== 32) return false;
      if (fn % 2 === 1 || fn === sn) {
        result = node(path[i], result);
        while (fn % 2 === 0 && fn !== 0) { fn = Math.floor(fn / 2); sn = Math.floor(sn / 2); }
      } else {
        result = node(result, path[i]);
      }
      fn = Math.floor(fn / 2);
      sn = Math.floor(sn / 2);
    }
    return sn === 0 && hex(result) === hex(root);
  }

  return {
    sha256: sha256, hex: hex, fromHex: fromHex, concat: concat, utf8: utf8, text: text, fromBase64: fromBase64,
    toBase64: toBase64, leaf: leaf, node: node, Tree: Tree, included: included
  };
})();
if (typeof module !== "undefined") module.exports = LabauditHash;
