// The trials table: filter, sort and page through all rows. Without this script the static pages hold every row.
"use strict";
(function () {
  var tool = document.getElementById("tool"), table = document.getElementById("trials");
  if (!tool || !table) return;
  var base = tool.dataset.base, shards = Number(tool.dataset.shards), PAGE = Number(tool.dataset.page);
  var rows = [], shown = [], state = { q: "", variant: "", outcome: "", counts: "", sort: "n", down: false, page: 1 };
  var root = base.replace(/data\/$/, ""), body = table.tBodies[0], heads = table.tHead.rows[0].cells, parts = {};

  window.labauditData = function (name, shard) { parts[name] = shard; };

  function loadAll(number) {
    if (number === shards) { ready(); return; }
    var script = document.createElement("script");
    script.src = base + "trials-" + String(number).padStart(3, "0") + ".js";
    script.onload = function () { loadAll(number + 1); };
    // Without the data the static table stays as it is, complete and readable.
    script.onerror = function () { tool.hidden = true; };
    document.body.appendChild(script);
  }

  function ready() {
    Object.keys(parts).sort().forEach(function (name) {
      var shard = parts[name], keys = shard.columns;
      for (var i = 0; i < shard.rows; i++) {
        var row = {};
        for (var k = 0; k < keys.length; k++) row[keys[k]] = shard.values[keys[k]][i];
        row.text = (row.trial_id + " " + row.task + " " + row.variant).toLowerCase();
        rows.push(row);
      }
    });
    build();
    read();
    apply();
    tool.dataset.ready = "yes";
  }

  function element(tag, text, attributes) {
    var made = document.createElement(tag);
    if (text) made.textContent = text;
    Object.keys(attributes || {}).forEach(function (name) { made.setAttribute(name, attributes[name]); });
    return made;
  }

  function field(id, label, control) {
    var box = element("div");
    box.appendChild(element("label", label, { "for": id }));
    control.id = id;
    box.appendChild(control);
    return box;
  }

  function choice(key, label) {
    var select = element("select"), values = {};
    rows.forEach(function (row) { values[row[key] === null ? "none" : row[key]] = 1; });
    select.appendChild(element("option", "all", { value: "" }));
    Object.keys(values).sort().forEach(function (value) { select.appendChild(element("option", value, { value: value })); });
    select.addEventListener("change", function () { state[key] = select.value; state.page = 1; apply(); });
    return field("f-" + key, label, select);
  }

  function build() {
    var box = element("div", "", { "class": "tool", role: "search", "aria-label": "Filter trials" });
    var text = element("input", "", { type: "search", placeholder: "trial, task or variant" });
    text.addEventListener("input", function () { state.q = text.value; state.page = 1; apply(); });
    box.appendChild(field("f-q", "Find", text));
    box.appendChild(choice("variant", "Variant"));
    box.appendChild(choice("outcome", "Outcome"));
    box.appendChild(choice("counts", "Counts"));
    tool.appendChild(box);
    tool.appendChild(element("p", "", { id: "found", role: "status" }));
    var pages = element("div", "", { "class": "tool" });
    ["Previous page", "Next page"].forEach(function (label, number) {
      var button = element("button", label, { type: "button", id: number ? "next" : "previous" });
      button.addEventListener("click", function () { state.page += number ? 1 : -1; apply(); });
      pages.appendChild(button);
    });
    pages.hidden = rows.length <= PAGE;
    tool.appendChild(pages);
    Array.prototype.forEach.call(heads, function (head) {
      var key = head.dataset.key, button = element("button", head.textContent, { type: "button" });
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () {
        state.down = state.sort === key ? !state.down : false;
        state.sort = key;
        state.page = 1;
        apply();
      });
    });
    tool.hidden = false;
    var pagesNav = document.getElementById("pages");
    if (pagesNav) pagesNav.hidden = true;
  }

  // The state stands in the address, so that a filtered table can be linked to.
  function read() {
    new URLSearchParams(location.hash.slice(1)).forEach(function (value, key) {
      if (key === "page") state.page = Math.max(1, Number(value) || 1);
      else if (key === "down") state.down = value === "1";
      else if (key in state) state[key] = value;
    });
    document.getElementById("f-q").value = state.q;
    ["variant", "outcome", "counts"].forEach(function (key) { document.getElementById("f-" + key).value = state[key]; });
  }

  function write() {
    var parameters = new URLSearchParams();
    ["q", "variant", "outcome", "counts"].forEach(function (key) { if (state[key]) parameters.set(key, state[key]); });
    if (state.sort !== "n" || state.down) parameters.set("sort", state.sort);
    if (state.down) parameters.set("down", "1");
    if (state.page > 1) parameters.set("page", String(state.page));
    var text = parameters.toString();
    if (text !== location.hash.slice(1)) history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
  }

  function compare(a, b) {
    var x = a[state.sort], y = b[state.sort];
    if (x === y || (x === undefined && y === undefined)) return a.n - b.n;
    // What is not there comes last, whichever way the rest is sorted.
    if (x === null || x === undefined) return 1;
    if (y === null || y === undefined) return -1;
    var order = typeof x === "number" && typeof y === "number" ? x - y : String(x) < String(y) ? -1 : 1;
    return state.down ? -order : order;
  }

  function apply() {
    var words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    shown = rows.filter(function (row) {
      return words.every(function (word) { return row.text.indexOf(word) >= 0; }) &&
        ["variant", "outcome", "counts"].every(function (key) { return !state[key] || String(row[key] === null ? "none" : row[key]) === state[key]; });
    });
    shown.sort(compare);
    var last = Math.max(1, Math.ceil(shown.length / PAGE));
    state.page = Math.min(Math.max(1, state.page), last);
    draw();
    document.getElementById("found").textContent = shown.length + " of " + rows.length + " trials, page " + state.page + " of " + last;
    document.getElementById("previous").disabled = state.page === 1;
    document.getElementById("next").disabled = state.page === last;
    Array.prototype.forEach.call(heads, function (head) {
      if (head.dataset.key === state.sort) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    write();
  }

  function words(value) { return String(value === null || value === undefined ? "none" : value).replace(/_/g, " "); }

  // The same marking of unseen characters as on the static pages.
  function visible(text) {
    return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff]/g, function (found) {
      return "\u27e8U+" + found.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0") + "\u27e9";
    });
  }

  function draw() {
    body.textContent = "";
    shown.slice((state.page - 1) * PAGE, state.page * PAGE).forEach(function (row) {
      var line = body.insertRow();
      Array.prototype.forEach.call(heads, function (head) {
        var key = head.dataset.key, value = row[key], cell = line.insertCell();
        if (head.classList.contains("n")) cell.className = "n";
        if (key === "trial_id") cell.appendChild(element("a", value, { href: root + row.href }));
        else if (key === "counts" || key === "outcome") cell.appendChild(element("span", words(value), { "class": "state is-" + (value || "none") }));
        else if (key === "seconds") cell.textContent = value === null ? "not available" : value < 10 ? value.toFixed(3) + " s" : value < 600 ? value.toFixed(1) + " s" : (value / 60).toFixed(1) + " min";
        else if (key.slice(0, 7) === "metric:") cell.textContent = value === null ? "not available" : value === true ? "yes" : value === false ? "no" : typeof value === "number" && value % 1 ? value.toFixed(3).replace("-", "\u2212") : visible(value);
        else if (key === "isolation" || key === "replay") cell.textContent = words(value);
        else cell.textContent = visible(key === "task" && value.length > 60 ? value.slice(0, 59) + "\u2026" : value);
      });
    });
    if (!shown.length) { var none = body.insertRow().insertCell(); none.colSpan = heads.length; none.textContent = "No trial fits these filters."; }
  }

  loadAll(0);
})();
