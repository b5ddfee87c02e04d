(async function () {
  "use strict";
  const root = document.documentElement;
  const all = (query, within) => Array.from((within || document).querySelectorAll(query));
  const narrow = () => window.innerWidth < 640;
  const touch = window.matchMedia("(pointer: coarse)").matches;
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  // Light and dark: the system's, until the reader says otherwise.
  const button = document.getElementById("theme");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  function remember(value) {
    try { localStorage.setItem("lanikai-theme", value); } catch (error) { /* a file may have no storage */ }
  }
  function recall() {
    try { return localStorage.getItem("lanikai-theme"); } catch (error) { return null; }
  }
  function nameTheme() {
    button.textContent = dark() ? "Light colours" : "Dark colours";
    button.removeAttribute("aria-pressed");
  }
  const kept = recall();
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  nameTheme();
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    remember(root.dataset.theme);
    nameTheme();
    redraw();
  });
  system.addEventListener("change", () => { nameTheme(); redraw(); });

  // Tables: a click, Enter or Space on a heading sorts by it, and again the other way round.
  const collator = new Intl.Collator("en", { numeric: true });
  function order(table, column, down) {
    const heads = all("thead th", table);
    const numeric = heads[column].classList.contains("number");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows).map((row, place) => ({ row, place, value: row.cells[column].dataset.v }));
    rows.sort((a, b) => {
      if (!a.value || !b.value) return (a.value ? 0 : 1) - (b.value ? 0 : 1) || a.place - b.place;
      const found = numeric ? a.value - b.value : collator.compare(a.value, b.value);
      return (down ? -found : found) || a.place - b.place;
    });
    body.append(...rows.map((one) => one.row));
    heads.forEach((head, place) =>
      head.setAttribute("aria-sort", place !== column ? "none" : down ? "descending" : "ascending"));
  }
  all("table.sortable").forEach((table) => {
    all("thead th", table).forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () =>
        order(table, column, head.getAttribute("aria-sort") === "ascending"));
    });
    const rows = Array.from(table.tBodies[0].rows);
    if (rows.length < 16) return;
    const label = document.createElement("label");
    label.className = "filter";
    const input = document.createElement("input");
    input.type = "search";
    const said = document.createElement("span");
    said.setAttribute("role", "status");
    label.append("Rows with ", input, said);
    table.parentElement.before(label);
    input.setAttribute("aria-label", "Show only rows with this text: " + table.caption.textContent);
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      let shown = 0;
      rows.forEach((row) => {
        row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
        shown += row.hidden ? 0 : 1;
      });
      said.textContent = wanted ? shown + " of " + rows.length + " rows" : "";
    });
  });

  all("[data-copy]").forEach((copy) => copy.addEventListener("click", async () => {
    const code = copy.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      copy.textContent = "Copied";
    } catch (error) {
      getSelection().selectAllChildren(code);
      copy.textContent = "Selected";
    }
    setTimeout(() => { copy.textContent = "Copy"; }, 2000);
  }));

  // What a link leads to opens, if it is folded.
  function unfold() {
    let part = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!part) return;
    if (part.tagName === "DETAILS") part.open = true;
    part.scrollIntoView();
  }
  window.addEventListener("hashchange", unfold);

  // Charts.
  async function library() {
    const packed = Uint8Array.from(atob(document.getElementById("library").textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    if (!window.Plotly) throw new Error("the plotting library did not start");
  }
  function colours(value) {
    if (typeof value === "string" && value[0] === "@") {
      const name = value.slice(1);
      const variable = /^\d$/.test(name) ? "--c" + name : "--" + name;
      return getComputedStyle(root).getPropertyValue(variable).trim();
    }
    if (Array.isArray(value)) return value.map(colours);
    if (value && typeof value === "object")
      return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, colours(one)]));
    return value;
  }
  const axis = { gridcolor: "@grid", linecolor: "@line", zerolinecolor: "@line", tickcolor: "@line", automargin: true,
    title: { standoff: 10, font: { size: 13 } } };
  function layout(chart) {
    const own = chart.layout || {};
    const base = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", height: chart.height,
      font: { color: "@text", family: "system-ui, 'Liberation Sans', Arial, sans-serif", size: narrow() ? 11 : 13 },
      margin: { l: narrow() ? 44 : 60, r: narrow() ? 8 : 20, t: 34, b: 48 },
      hoverlabel: { bgcolor: "@card", bordercolor: "@line", font: { color: "@text" } },
      legend: { orientation: "h", y: -0.22, x: 0, yanchor: "top" },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: "@muted", activecolor: "@link" },
      dragmode: touch ? false : "zoom", hovermode: "closest",
    };
    const made = Object.assign(base, own);
    for (const key of ["xaxis", "yaxis", "xaxis2", "yaxis2"])
      if (own[key] || key.length === 5) made[key] = Object.assign({}, axis, own[key] || {}, {
        title: Object.assign({}, axis.title, (own[key] || {}).title) });
    return colours(made);
  }
  const settings = { responsive: true, displaylogo: false, displayModeBar: true, showSendToCloud: false,
    plotlyServerURL: "",
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"] };
  function named(plot) {
    all("svg.main-svg", plot).forEach((svg, place) => {
      if (place) { svg.setAttribute("aria-hidden", "true"); return; }
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", "Chart: " + plot.dataset.title);
    });
  }
  async function draw(plot, chart) {
    await window.Plotly.react(plot, colours(chart.data), layout(chart), settings);
    named(plot);
    plot.dataset.drawn = "yes";
  }

  // A chart whose axes the reader chooses: rows alike in all but the seed are averaged, with a 95% interval.
  function explore(figure, data) {
    const chosen = (axis) => figure.querySelector(`[data-axis=${axis}]`).value;
    const x = chosen("x"), y = chosen("y"), by = chosen("by");
    const column = (name) => data.columns[name];
    const shown = (value) => (value === null || value === undefined ? "-" : String(value));
    const clean = (text) => shown(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
    // A result of the whole point stands in the row of each of its flows: it counts once.
    const whole = data.element && data.element !== x && !data.of_flows.includes(y);
    const others = data.parameters.filter((name) => name !== x && name !== "seed" && !(whole && name === data.element));
    const keys = by === "*" ? others : others.filter((name) => name === by);
    const lines = new Map();
    column(y).forEach((value, row) => {
      if (typeof value !== "number") return;
      if (whole && column(data.element)[row] !== null && column(data.element)[row] !== data.first) return;
      const name = keys.map((key) => data.labels[key] + " " + shown(column(key)[row])).join(", ");
      if (!lines.has(name)) lines.set(name, new Map());
      const places = lines.get(name), at = column(x)[row];
      if (!places.has(at)) places.set(at, []);
      places.get(at).push(value);
    });
    const most = 24, names = Array.from(lines.keys());
    const numeric = column(x).every((value) => value === null || typeof value === "number");
    const dashes = ["solid", "dash", "dot", "dashdot"], marks = ["circle", "square", "diamond", "triangle-up", "x", "star"];
    let several = false;
    const traces = names.slice(0, most).map((name, place) => {
      const points = Array.from(lines.get(name)).filter(([at]) => at !== null);
      if (numeric) points.sort((a, b) => a[0] - b[0]);
      const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
      const half = (values) => {
        if (values.length < 2) return 0;
        several = true;
        const middle = mean(values);
        const spread = values.reduce((sum, one) => sum + (one - middle) ** 2, 0) / (values.length - 1);
        return data.student[Math.min(values.length - 2, data.student.length - 1)] * Math.sqrt(spread / values.length);
      };
      return {
        type: "scatter", mode: numeric ? "lines+markers" : "markers", name: clean(name || "all"),
        x: points.map(([at]) => (numeric ? at : clean(at))), y: points.map(([, values]) => mean(values)),
        error_y: { type: "data", array: points.map(([, values]) => half(values)), visible: true, thickness: 1.2, width: 3 },
        line: { color: "@" + (place % 8), dash: dashes[Math.floor(place / 8) % 4], width: Math.max(1.5, 4.5 - place) },
        marker: { color: "@" + (place % 8), symbol: marks[place % 6], size: Math.max(6, 11 - 2 * place) },
      };
    });
    const averaged = by === "*" || by === x ? [] : others.filter((name) => name !== by);
    figure.querySelector("[data-said]").textContent =
      (names.length > most ? `The first ${most} of ${names.length} lines are shown. ` : "") +
      (several ? "Bars are 95% intervals of the mean. " : "") +
      (averaged.length ? "Averaged over: " + averaged.map((name) => data.labels[name]).join(", ") + "." : "");
    return { data: traces, height: data.height, layout: {
      showlegend: true, xaxis: { title: { text: clean(data.labels[x]) }, type: numeric ? "linear" : "category" },
      yaxis: { title: { text: clean(data.labels[y]) }, rangemode: "tozero" } } };
  }

  const charts = [];
  async function redraw() {
    for (const [plot, chart] of charts) if (plot.dataset.drawn) await draw(plot, chart());
  }
  try {
    all("script[data-chart]").forEach((script) => {
      const chart = JSON.parse(script.textContent);
      charts.push([document.getElementById(script.dataset.chart), () => chart]);
    });
    all("script[data-explorer]").forEach((script) => {
      const plot = document.getElementById(script.dataset.explorer), data = JSON.parse(script.textContent);
      const figure = plot.closest("figure");
      charts.push([plot, () => explore(figure, data)]);
      all("select", figure).forEach((select) =>
        select.addEventListener("change", () => window.Plotly && draw(plot, explore(figure, data))));
    });
    if (charts.length) {
      if (typeof DecompressionStream === "undefined")
        throw new Error("this browser is older than 2023; the tables have the same numbers");
      await library();
      const drawSeen = async () => {
        for (const [plot, chart] of charts)
          if (!plot.dataset.drawn && plot.offsetParent !== null) {
            await draw(plot, chart());
            await new Promise((go) => setTimeout(go, 0));
          }
      };
      all("details").forEach((details) => details.addEventListener("toggle", drawSeen));
      await drawSeen();
    }
  } catch (error) {
    const trouble = document.getElementById("trouble");
    trouble.textContent = "The charts cannot be drawn: " + error.message;
    trouble.hidden = false;
  }
  unfold();
  root.dataset.ready = "yes";
})();
