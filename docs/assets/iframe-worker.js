// Search runs in a worker, which a browser does not start for a page that is opened from a disk. There a hidden frame
// stands in for it: it loads the worker's script, and has the worker's calls.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html><title>worker</title>";
      frame.onload = () => {
        const inside = frame.contentWindow;
        inside.postMessage = (data) => {
          const event = new MessageEvent("message", { data });
          this.dispatchEvent(event);
          if (this.onmessage) this.onmessage(event);
        };
        inside.importScripts = (...urls) =>
          urls.reduce((before, one) => before.then(() => load(inside, new URL(one, url))), Promise.resolve());
        load(inside, url).then(() => {
          this.inside = inside;
          for (const data of this.waiting) this.postMessage(data);
        });
      };
      document.body.append(frame);
    }
    postMessage(data) {
      if (!this.inside) this.waiting.push(data);
      else this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }));
    }
    terminate() {}
  };
  const load = (inside, url) =>
    new Promise((done, failed) => {
      const script = inside.document.createElement("script");
      script.src = url;
      script.onload = done;
      script.onerror = failed;
      inside.document.body.append(script);
    });
}
