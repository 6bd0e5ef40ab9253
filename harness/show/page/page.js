// SPDX-License-Identifier: MIT - page.js: sorting, filtering and details of tables
"use strict";
(function () {
  document.documentElement.classList.add("js");

  function value(row, column) {
    var cell = row.cells[column], v = cell.dataset.v;
    return v === undefined ? cell.textContent : v === "" ? null : Number(v);
  }

  // Rows without a figure come last, whichever way the others go.
  function compare(a, b, way) {
    if (a === null || b === null) return (a === null) - (b === null);
    return way * (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
  }

  function sort(table, column) {
    var heads = table.tHead.rows[0].cells, head = heads[column], body = table.tBodies[0];
    var first = head.classList.contains("n") ? "descending" : "ascending";
    var second = first === "ascending" ? "descending" : "ascending";
    var order = head.getAttribute("aria-sort") === first ? second : first;
    for (var h of heads) h.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    var way = order === "ascending" ? 1 : -1, list = [];
    for (var row of body.rows)
      if (row.classList.contains("detail")) list[list.length - 1].push(row);
      else list.push([row]);
    list.sort(function (a, b) {
      return compare(value(a[0], column), value(b[0], column), way);
    });
    for (var group of list) for (var r of group) body.appendChild(r);
  }

  function filter(table, text) {
    var words = text.toLowerCase().split(/\s+/), shown = true;
    for (var row of table.tBodies[0].rows) {
      if (!row.classList.contains("detail")) {
        var has = row.textContent.toLowerCase();
        shown = words.every(function (w) { return has.includes(w); });
      }
      row.hidden = !shown;
    }
  }

  function element(name, text, title) {
    var e = document.createElement(name);
    if (text !== undefined) e.textContent = text;
    if (title) e.title = title;
    return e;
  }

  // Every column that has a value in some launch; a value that all share stands once.
  function columns(fields, used, launches) {
    var table = element("table"), head = table.createTHead().insertRow();
    var body = table.createTBody(), group = "";
    head.append(element("th", "column"), element("th", "unit"));
    launches.forEach(function (_, i) { head.append(element("th", "launch " + (i + 1))); });
    used.forEach(function (f, k) {
      var cells = launches.map(function (l) { return l[k] || ""; });
      if (cells.every(function (c) { return c === ""; })) return;
      if (fields[f][3] !== group) {
        group = fields[f][3];
        var title = element("th", group);
        title.colSpan = 2 + launches.length;
        body.insertRow().append(title);
      }
      var row = body.insertRow();
      row.append(element("th", fields[f][0], fields[f][2]), element("td", fields[f][1]));
      if (cells.every(function (c) { return c === cells[0]; })) {
        var one = element("td", cells[0]);
        one.colSpan = launches.length;
        row.append(one);
      } else {
        cells.forEach(function (c) { row.append(element("td", c)); });
      }
    });
    return table;
  }

  function toggle(button) {
    var row = button.closest("tr"), detail = row.nextElementSibling;
    var open = detail.classList.toggle("open"), place = detail.querySelector(".columns");
    row.classList.toggle("open", open);
    button.setAttribute("aria-expanded", String(open));
    if (!open || place.firstChild) return;
    var page = JSON.parse(document.getElementById("fields").textContent);
    var data = JSON.parse(document.getElementById(place.dataset.from).textContent);
    place.append(columns(page, data.used, data.points[Number(place.dataset.point)]));
  }

  document.addEventListener("click", function (event) {
    var button = event.target.closest("button");
    if (!button) return;
    var cell = button.parentElement;
    if (cell.tagName === "TH") sort(button.closest("table"), cell.cellIndex);
    else toggle(button);
  });
  document.addEventListener("input", function (event) {
    filter(document.getElementById(event.target.dataset.table), event.target.value);
  });
})();
