// Elements of a page. What is said in a call is always set as text, never as markup.

export function made(name, className, text = "") {
  return Object.assign(document.createElement(name), { className, textContent: text });
}
