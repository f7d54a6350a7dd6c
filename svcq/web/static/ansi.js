// Output of programs as lines of HTML: colours are understood, all other control codes are dropped.
"use strict";

(() => {
  // CSI sequences (of which `m` sets colours), OSC and other strings, single escapes.
  const CODE = /\x1b(?:\[([0-?]*)[ -\/]*([@-~])|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|[ -\/]*[0-~])/g;
  const OTHER = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

  class Screen {
    constructor(list, most) {
      this.list = list;
      this.most = most;
      this.clear();
    }

    clear() {
      this.style = {};
      this.rest = "";
      this.line = null;
      this.list.replaceChildren();
    }

    // Text as it comes; a code that is cut in two waits for its other half.
    add(text) {
      text = this.rest + text;
      const cut = text.lastIndexOf("\x1b");
      const open = cut >= 0 && text.length - cut < 40 && !/^\x1b(?:\[[0-?]*[ -\/]*[@-~]|[^[])/.test(text.slice(cut));
      this.rest = open ? text.slice(cut) : "";
      if (open) text = text.slice(0, cut);
      const lines = text.split("\n");
      lines.forEach((line, i) => {
        if (this.line === null) this.begin();
        this.write(line.endsWith("\r") && i < lines.length - 1 ? line.slice(0, -1) : line);
        if (i < lines.length - 1) this.line = null;
      });
      while (this.list.childElementCount > this.most) this.list.firstElementChild.remove();
    }

    begin() {
      this.line = document.createElement("li");
      this.list.append(this.line);
    }

    write(text) {
      // A carriage return begins the line anew: progress bars are drawn that way.
      const again = text.lastIndexOf("\r");
      if (again >= 0) {
        if (again < text.length - 1) this.line.replaceChildren();
        text = again < text.length - 1 ? text.slice(again + 1) : text.slice(text.lastIndexOf("\r", again - 1) + 1, again);
      }
      let at = 0;
      for (const code of text.matchAll(CODE)) {
        this.put(text.slice(at, code.index));
        if (code[2] === "m") this.set(code[1]);
        at = code.index + code[0].length;
      }
      this.put(text.slice(at));
    }

    put(text) {
      text = text.replace(OTHER, "");
      if (!text) return;
      const names = Object.values(this.style).filter(Boolean);
      if (!names.length) {
        this.line.append(text);
        return;
      }
      const span = document.createElement("span");
      span.className = names.join(" ");
      span.textContent = text;
      this.line.append(span);
    }

    set(numbers) {
      const codes = numbers.split(/[;:]/).map(Number);
      for (let i = 0; i < codes.length; i += 1) {
        const code = codes[i];
        if (code === 0) this.style = {};
        else if (code === 1) this.style.bold = "b";
        else if (code === 2) this.style.dim = "d";
        else if (code === 3) this.style.italic = "i";
        else if (code === 4) this.style.line = "u";
        else if (code === 22) this.style.bold = this.style.dim = "";
        else if (code === 23) this.style.italic = "";
        else if (code === 24) this.style.line = "";
        else if (code >= 30 && code <= 37) this.style.front = `f${code - 30}`;
        else if (code >= 90 && code <= 97) this.style.front = `f${code - 90}`;
        else if (code >= 40 && code <= 47) this.style.back = `g${code - 40}`;
        else if (code >= 100 && code <= 107) this.style.back = `g${code - 100}`;
        else if (code === 39) this.style.front = "";
        else if (code === 49) this.style.back = "";
        else if (code === 38 || code === 48) {
          const [kind, skip] = codes[i + 1] === 2 ? ["rgb", 4] : ["one", 2];
          const near = kind === "rgb" ? nearest(codes.slice(i + 2, i + 5)) : of256(codes[i + 2]);
          this.style[code === 38 ? "front" : "back"] = `${code === 38 ? "f" : "g"}${near}`;
          i += skip;
        }
      }
    }
  }

  // Eight colours are enough to tell things apart, and each is readable on our ground.
  const nearest = ([red = 0, green = 0, blue = 0]) => {
    const most = Math.max(red, green, blue);
    if (most < 60) return 0;
    return (red > most * 0.6 ? 1 : 0) | (green > most * 0.6 ? 2 : 0) | (blue > most * 0.6 ? 4 : 0);
  };
  const of256 = (n = 7) => {
    if (n < 16) return n % 8;
    if (n >= 232) return n < 244 ? 0 : 7;
    const part = (of) => Math.floor((n - 16) / of) % 6 * 51;
    return nearest([part(36), part(6), part(1)]);
  };

  svcq.Screen = Screen;
})();
