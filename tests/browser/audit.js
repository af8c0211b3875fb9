// What a page that is shown is like: what is wrong with it beside what axe finds, and how much there is of each thing.
() => {
  const wrong = [];
  const shown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const told = (element) => `${element.tagName.toLowerCase()}#${element.id}.${element.className}: ${element.textContent.trim().slice(0, 40)}`;

  // Width: the page itself never scrolls sideways; what is wide does so in its own box.
  const page = document.scrollingElement;
  if (page.scrollWidth > innerWidth) {
    const past = [...document.body.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1);
    wrong.push(`the page is ${page.scrollWidth} wide: ${past.slice(0, 3).map(told).join(" / ")}`);
  }

  // Links and tables.
  for (const each of document.querySelectorAll("a")) {
    if (!/^(https?:|#)/.test(each.href)) wrong.push(`a strange link: ${each.href}`);
  }
  for (const each of document.querySelectorAll("table")) {
    if (!each.caption?.textContent.trim()) wrong.push(`a table without a caption: ${told(each)}`);
    if ([...each.querySelectorAll("th")].some((th) => !th.scope)) wrong.push(`a heading without scope: ${told(each)}`);
  }

  // Words of a page that end in dots, but for a digest; its cell says all of it on hover and is a file's.
  for (const each of document.querySelectorAll("main *")) {
    if (getComputedStyle(each).textOverflow === "ellipsis" && each.scrollWidth > each.clientWidth && !each.closest(".digest")) {
      wrong.push(`cut: ${told(each)}`);
    }
  }

  // Words of a picture: what lies beyond its edge is cut, and so is what is clipped or ends in dots.
  for (const each of document.querySelectorAll(".chart svg text")) {
    const word = each.getBoundingClientRect(), edge = each.ownerSVGElement.getBoundingClientRect();
    const beyond = word.left < edge.left - 1 || word.right > edge.right + 1 || word.bottom > edge.bottom + 1;
    if (beyond || each.closest("[clip-path]") || each.textContent.endsWith("...")) {
      wrong.push(`cut at the edge of #${each.closest(".chart").id}: ${each.textContent}`);
    }
  }
  for (const picture of document.querySelectorAll(".chart svg")) {
    const words = [...picture.querySelectorAll("text")].map((each) => [each, each.getBoundingClientRect()]);
    words.forEach(([one, a], i) => words.slice(i + 1).forEach(([other, b]) => {
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3) {
        wrong.push(`"${one.textContent}" lies on "${other.textContent}" in #${picture.closest(".chart").id}`);
      }
    }));
  }

  // Days, amounts, and kinds of guests with their number, are read in one piece in tables.
  const broken = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (broken.nextNode()) {
    const node = broken.currentNode, range = document.createRange();
    if (!node.parentElement.closest("td, tbody th")) continue;
    for (const { 0: piece, index } of node.data.matchAll(/\d{4}-\d\d-\d\d|(?<![\w:.])\d[\d,]*(\.\d+)? [A-Z]{3}\b|(?<!\S)[^\s\d,;]{1,20} \d+(?=[,;]| \(|$)/g)) {
      range.setStart(node, index);
      range.setEnd(node, index + piece.length);
      if (new Set([...range.getClientRects()].map((each) => each.top)).size > 1) wrong.push(`broken over lines: ${piece}`);
    }
  }

  const titles = document.querySelectorAll("h1").length;
  if (titles !== 1) wrong.push(`${titles} titles`);

  // Nothing that the policy forbids and a browser would only complain about.
  for (const each of document.querySelectorAll("body [onclick], body [onerror], body [onload], body script:not([type])")) {
    wrong.push(`runs: ${told(each)}`);
  }

  // Contrast of every text with what is behind it (WCAG 2: 4.5, large text 3). Where that is a shade, as in a table, axe leaves it open.
  const parsed = (text) => {
    const [r, g, b, a = 1] = (text.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
    return { r, g, b, a };
  };
  const over = (top, below) => ({
    r: top.r * top.a + below.r * (1 - top.a), g: top.g * top.a + below.g * (1 - top.a), b: top.b * top.a + below.b * (1 - top.a), a: 1,
  });
  const behind = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const color = parsed(getComputedStyle(e).backgroundColor);
      if (color.a > 0) layers.push(color);
      if (color.a === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), { r: 255, g: 255, b: 255, a: 1 });
  };
  const light = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const seen = new Set();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let texts = 0;
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || seen.has(element) || element.closest("svg, script, noscript") || !shown(element)) continue;
    seen.add(element);
    texts += 1;
    const style = getComputedStyle(element), back = behind(element);
    const [a, b] = [light(over(parsed(style.color), back)), light(back)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) wrong.push(`contrast ${ratio.toFixed(2)}: ${told(element)}`);
  }

  return {
    wrong: [...new Set(wrong)].slice(0, 20),
    texts,
    charts: [...document.querySelectorAll(".chart")].map((c) => ({
      id: c.id,
      nodes: c.querySelectorAll("svg *").length,
      rows: c.closest("figure").querySelectorAll("details tbody tr").length,
    })),
  };
}
