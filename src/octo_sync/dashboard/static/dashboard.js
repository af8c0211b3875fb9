// The theme, and the charts: everything else on the pages is there without a script.
(() => {
  "use strict";
  const root = document.documentElement;
  const KEY = "octo-sync-theme";
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function kept() {
    try {
      const value = localStorage.getItem(KEY);
      return value === "light" || value === "dark" ? value : null;
    } catch {
      return null; // a file, or storage that is switched off
    }
  }
  function keep(value) {
    try {
      localStorage.setItem(KEY, value);
    } catch {
      // it holds for this page then
    }
  }
  const current = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  if (kept()) root.dataset.theme = kept(); // before anything is painted

  const color = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  // `var(--name)` in an option becomes the colour that it is now.
  function resolved(value) {
    if (typeof value === "string") {
      const named = /^var\((--[a-z0-9-]+)\)$/.exec(value);
      return named ? color(named[1]) : value;
    }
    if (Array.isArray(value)) return value.map(resolved);
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, resolved(inner)]));
    }
    return value;
  }
  function theme() {
    const ink = color("--ink"), soft = color("--soft"), line = color("--line"), panel = color("--panel");
    const axis = {
      axisLine: { lineStyle: { color: line } },
      axisTick: { lineStyle: { color: line } },
      axisLabel: { color: soft },
      splitLine: { lineStyle: { color: line } },
      nameTextStyle: { color: soft },
    };
    return {
      textStyle: { color: ink, fontFamily: getComputedStyle(document.body).fontFamily },
      categoryAxis: { ...axis, splitLine: { show: false } },
      valueAxis: axis,
      legend: { textStyle: { color: ink }, pageTextStyle: { color: soft }, pageIconColor: soft },
      tooltip: { backgroundColor: panel, borderColor: line, textStyle: { color: ink } },
    };
  }
  // Tooltips are drawn as text, never as HTML; `{a|b}` would be a style to them.
  const plain = (text) => String(text).replaceAll("{", "\u2774").replaceAll("|", "\u2223");
  const percent = (value) => `${Math.round(value * 1000) / 10} %`;

  function completed({ option, leads }) {
    const made = resolved(option);
    for (const each of made.series) each.cursor = leads[each.name] ? "pointer" : "default";
    const shares = made.percent;
    delete made.percent;
    made.animation = false;
    const tooltip = made.tooltip;
    tooltip.renderMode = "richText";
    tooltip.formatter = (all) =>
      [
        plain(all[0].name),
        ...all
          .filter((each) => each.value !== null && each.value !== undefined && each.value !== "-")
          .map((each) => `${plain(each.seriesName)}: ${shares ? percent(each.value) : Number(each.value).toLocaleString("en")}`),
      ].join("\n");
    if (made.xAxis.axisLabel?.interval === 0) made.xAxis.axisLabel.formatter = (name) => name.replaceAll(" ", "\n");
    if (shares) made.yAxis.axisLabel = { ...made.yAxis.axisLabel, formatter: percent };
    return made;
  }

  // A legend has as many lines as its words need, and the picture below it stays as high as it is.
  function fit(chart, { height, option }) {
    if (!option.legend.show) return;
    const room = chart.getWidth() - SIGN;
    const words = option.series.some(({ name }) => name.length * LETTER > room) ? { width: room, overflow: "break", lineHeight: 15 } : {};
    chart.setOption({ legend: { textStyle: words } });
    const legend = chart.getViewOfComponentModel(chart.getModel().getComponent("legend"));
    const more = Math.max(0, Math.ceil(legend.group.getBoundingRect().height) - LINE);
    chart.setOption({ grid: { top: option.grid.top + more } });
    chart.resize({ height: height + more });
    chart.getDom().style.height = `${height + more}px`;
  }

  const LINE = 24, SIGN = 44, LETTER = 8; // pixels: the height of a legend of one line, what stands beside a name, and a wide letter
  const PAPER = 660; // pixels that a page of paper has room for
  let printing = false;
  const drawn = new Map();
  let charts = [];
  function draw() {
    if (!window.echarts) return;
    for (const each of charts) {
      const place = document.getElementById(each.id);
      if (!place) continue;
      drawn.get(each.id)?.dispose();
      place.style.height = `${each.height}px`;
      const chart = echarts.init(place, theme(), { renderer: "svg", width: printing ? PAPER : undefined });
      chart.setOption(completed(each));
      fit(chart, each);
      chart.on("click", ({ seriesName, dataIndex }) => {
        const address = each.leads[seriesName]?.[dataIndex];
        // Where nothing hovers, a touch shows what a value says instead.
        if (address && matchMedia("(hover: hover)").matches) location.assign(address);
      });
      drawn.set(each.id, chart);
    }
  }

  function label(button) {
    const other = current() === "dark" ? "light" : "dark";
    button.textContent = other === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Use the ${other} theme`);
  }
  // A click on the head of a column of numbers puts the largest first, then the smallest, then the rows as they came.
  function sortable(table) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 3) return;
    const number = (row, at) => Number.parseFloat(row.cells[at].textContent.trim().replace(/[<>,]/g, ""));
    for (const head of table.querySelectorAll("thead th.number")) {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        for (const other of table.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
        const order = before === "descending" ? "ascending" : before ? "" : "descending";
        if (order) head.setAttribute("aria-sort", order);
        const sign = order === "descending" ? -1 : 1;
        const key = (row) => {
          const found = number(row, head.cellIndex);
          return Number.isNaN(found) ? Infinity : sign * found; // what is not known comes last
        };
        table.tBodies[0].append(...(order ? [...rows].sort((a, b) => (key(a) > key(b)) - (key(a) < key(b))) : rows));
      });
    }
  }
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".scroll table:not(.coverage)").forEach(sortable);
    const block = document.getElementById("charts");
    charts = block ? JSON.parse(block.textContent) : [];
    draw();
    root.dataset.height = String(root.scrollHeight); // for who draws the page to a picture
    const button = document.getElementById("theme");
    button.hidden = false;
    label(button);
    button.addEventListener("click", () => {
      root.dataset.theme = current() === "dark" ? "light" : "dark";
      keep(root.dataset.theme);
      label(button);
      draw();
    });
    dark.addEventListener("change", () => {
      label(button);
      draw();
    });
    let wait = 0;
    addEventListener("resize", () => {
      clearTimeout(wait);
      wait = setTimeout(() => charts.forEach((each) => {
        drawn.get(each.id)?.resize();
        if (drawn.has(each.id)) fit(drawn.get(each.id), each);
      }), 100);
    });
    // Paper is white and narrow, whatever the screen is.
    let before;
    addEventListener("beforeprint", () => {
      before = root.dataset.theme;
      root.dataset.theme = "light";
      printing = true;
      draw();
    });
    addEventListener("afterprint", () => {
      if (before) root.dataset.theme = before;
      else delete root.dataset.theme;
      printing = false;
      draw();
    });
    document.getElementById("q")?.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      event.target.form.requestSubmit();
    });
    document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  });
})();
