// Keys for those who decide all day. Off while typing; can be switched off; each only repeats a link or button.
"use strict";

(() => {
  const dialog = document.getElementById("dialog");
  const list = document.getElementById("keys");
  const off = () => localStorage.getItem("signoff-keys") === "off";
  const show = () => document.documentElement.classList.toggle("keys-off", off());
  show();

  const isTyping = (element) =>
    element instanceof HTMLElement &&
    (element.isContentEditable || /^(TEXTAREA|SELECT)$/.test(element.tagName) ||
      (element.tagName === "INPUT" && !/^(checkbox|radio|button|submit)$/.test(element.type)));

  const isShown = (element) => element.getClientRects().length > 0;

  function rows() {
    return [...document.querySelectorAll("[data-open]")].filter(isShown);
  }

  function move(step) {
    const all = rows();
    if (all.length === 0) {
      const link = document.querySelector(step > 0 ? "[data-next]" : "[data-previous]");
      if (link) link.click();
      return;
    }
    const focused = all.indexOf(document.activeElement);
    const current = focused >= 0 ? focused : all.findIndex((row) => row.hasAttribute("aria-current"));
    const row = all[Math.min(all.length - 1, Math.max(0, current + step))];
    row.focus();
    row.scrollIntoView({ block: "nearest" });
  }

  function go(selector) {
    const found = [...document.querySelectorAll(selector)].find(isShown);
    if (!found) return;
    if (found.matches("[data-key-clicks]")) found.click();
    else found.focus();
  }

  const acts = {
    j: () => move(1),
    k: () => move(-1),
    a: () => go("[data-key=a]"),
    r: () => go("[data-key=r]"),
    "?": () => list && list.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) {
      const form = event.target.closest && event.target.closest("form");
      const button = form && form.querySelector("button[data-decides], button:not([type=button])");
      if (button && !button.disabled) {
        event.preventDefault();
        form.requestSubmit(button);
      }
      return;
    }
    if (off() || event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
    if (event.key === "Escape") {
      const close = document.querySelector("[data-close]");
      if (close && !document.querySelector("dialog[open]")) close.click();
      return;
    }
    if (document.querySelector("dialog[open]") || !acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  });

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-keys-switch]")) return;
    localStorage.setItem("signoff-keys", off() ? "on" : "off");
    show();
    event.target.textContent = off() ? "Switch keys on on this device" : "Switch keys off on this device";
  });
  if (list && off()) list.querySelector("[data-keys-switch]").textContent = "Switch keys on on this device";
  if (dialog) dialog.addEventListener("close", () => document.getElementById("dialog-content").replaceChildren());
})();
