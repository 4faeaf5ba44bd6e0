// What the terminal's library makes style elements with: the content policy lets no markup have a style of its own.

// styleOf makes an element that stands for a style element: what is written into it becomes a sheet of the document.
export function styleOf() {
  const sheet = new CSSStyleSheet()
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
  const element = document.createElement('span')
  element.hidden = true
  Object.defineProperty(element, 'textContent', {set: (text) => sheet.replaceSync(text)})
  const remove = element.remove.bind(element)
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet)
    remove()
  }
  return element
}
