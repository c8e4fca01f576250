// Lets a page that is opened from disk search: browsers start no workers there, so the search's
// code runs in a hidden frame in place of one.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.documentElement.append(frame)
      this.ready = new Promise(resolve => frame.addEventListener("load", resolve))
      window.addEventListener("message", event => {
        if (event.source === frame.contentWindow)
          this.dispatchEvent(new MessageEvent("message", { data: event.data }))
      })
      frame.srcdoc = `<script>
        self.postMessage = data => parent.postMessage(data, "*")
        self.importScripts = (...urls) => urls.reduce((before, url) => before.then(() =>
          new Promise((resolve, reject) => {
            const script = document.createElement("script")
            Object.assign(script, { src: url, onload: resolve, onerror: reject })
            document.head.append(script)
          })), Promise.resolve())
      </scr` + `ipt><script src="${new URL(url, location.href)}"></scr` + `ipt>`
      this.frame = frame
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {
      this.frame.remove()
    }
  }
