// Copy buttons beside digests and commands, links beside headings. Without this script one click still selects the whole
// text, and every heading keeps its anchor.
"use strict";
(function () {
  document.querySelectorAll("main h2[id], main h3[id]").forEach(function (heading) {
    var link = document.createElement("a");
    link.href = "#" + heading.id;
    link.className = "here";
    link.textContent = "#";
    link.setAttribute("aria-label", "link to " + heading.textContent.trim());
    heading.appendChild(link);
  });
})();
(function () {
  var seen = document.querySelectorAll("dd code.all, main p code.all, pre.command");
  if (!navigator.clipboard || !window.isSecureContext) return;
  seen.forEach(function (place) {
    var button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "copy";
    button.setAttribute("aria-label", "copy " + place.textContent.slice(0, 40));
    button.addEventListener("click", function () {
      navigator.clipboard.writeText(place.textContent).then(function () {
        button.textContent = "copied";
        setTimeout(function () { button.textContent = "copy"; }, 1500);
      });
    });
    if (place.tagName === "PRE") {
      var frame = document.createElement("div");
      frame.className = "pasted";
      place.replaceWith(frame);
      frame.append(place);
    }
    place.insertAdjacentElement("afterend", button);
  });
})();
