// Sorts a table by the column whose button is pressed, and the other way round when it is pressed again.
document.querySelectorAll("th button").forEach(function (button) {
  button.addEventListener("click", function () {
    var head = button.parentElement, table = head.closest("table"), body = table.tBodies[0];
    var place = Array.prototype.indexOf.call(head.parentElement.children, head);
    var down = head.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("th[aria-sort]").forEach(function (other) { other.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    var rows = Array.prototype.map.call(body.rows, function (row) {
      var cell = row.cells[place], number = cell.getAttribute("data-n");
      return {row: row, number: number === null ? null : parseFloat(number), text: cell.textContent.trim()};
    });
    rows.sort(function (a, b) {
      var order = a.number !== null && b.number !== null ? a.number - b.number : a.text.localeCompare(b.text);
      return down ? -order : order;
    });
    rows.forEach(function (each) { body.appendChild(each.row); });
  });
});
