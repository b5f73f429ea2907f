// Browsers start no worker from a file, so a site that is opened without a server would have no search. There a hidden
// frame runs the worker's script instead, and messages go between the two windows.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.onmessage = null
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inside = this.frame.contentWindow
      window.addEventListener("message", event => {
        if (event.source !== inside) return
        const copy = new MessageEvent("message", { data: event.data })
        this.dispatchEvent(copy)
        if (this.onmessage) this.onmessage(copy)
      })
      const page = inside.document
      page.open()
      page.write("<!doctype html><body></body>")
      page.close()
      inside.postMessage = data => parent_of(inside).dispatchEvent(new MessageEvent("message", { data, source: inside }))
      inside.importScripts = (...urls) => urls.reduce((before, one) => before.then(() => load(page, one)), Promise.resolve())
      this.ready = load(page, url)
    }
    postMessage(data) {
      const inside = this.frame.contentWindow
      this.ready.then(() => inside.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() { this.frame.remove() }
  }
  const parent_of = inside => inside.parent
  const load = (page, url) => new Promise((done, failed) => {
    const script = page.createElement("script")
    script.src = url
    script.onload = done
    script.onerror = () => failed(new Error(`${url} cannot be loaded`))
    page.body.append(script)
  })
}
