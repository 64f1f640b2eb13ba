// Gives every visible text whose contrast with what is behind it is less than the limit: [ratio, colour, background, text].
const limit = arguments[0];

function rgba(text) {
  const parts = text.match(/[\d.]+/g).map(Number);
  return { red: parts[0], green: parts[1], blue: parts[2], alpha: parts.length > 3 ? parts[3] : 1 };
}

function over(top, below) {
  const mix = (name) => top[name] * top.alpha + below[name] * (1 - top.alpha);
  return { red: mix("red"), green: mix("green"), blue: mix("blue"), alpha: 1 };
}

function background(element) {
  const layers = [];
  for (let each = element; each; each = each.parentElement) layers.push(rgba(getComputedStyle(each).backgroundColor));
  const canvas = matchMedia("(prefers-color-scheme: dark)").matches ? 18 : 255;
  return layers.reverse().reduce((below, top) => over(top, below), { red: canvas, green: canvas, blue: canvas, alpha: 1 });
}

function luminance(colour) {
  const [red, green, blue] = [colour.red, colour.green, colour.blue].map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function ratio(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const seen = new Set();
const poor = [];
let looked = 0;
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || seen.has(element) || !element.checkVisibility()) continue;
  seen.add(element);
  if (["SCRIPT", "STYLE"].includes(element.tagName)) continue;
  looked += 1;
  const behind = background(element);
  const colour = over(rgba(getComputedStyle(element).color), behind);
  const found = ratio(colour, behind);
  if (found < limit) poor.push([found.toFixed(2), getComputedStyle(element).color, JSON.stringify(behind), element.textContent.slice(0, 60)]);
}
return { looked, poor };
