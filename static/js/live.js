// What keeps a page true while it is open: polls that rest while nobody looks, the lost connection, dialogs.
// Nothing here decides anything; without it every link and form works by itself.
"use strict";

(() => {
  const body = document.body;
  const wide = window.matchMedia("(min-width: 1200px)");
  const dialog = document.getElementById("dialog");
  const lost = document.querySelector("[data-connection]");
  const look = () => body.dispatchEvent(new CustomEvent("signoff:look"));

  // ---- polls

  document.addEventListener("htmx:beforeRequest", (event) => {
    const element = event.target;
    if (element.matches("[data-poll]") && document.hidden) event.preventDefault();
    // Below 1200 px list and detail are pages of their own: follow the link instead.
    if (element.matches("[data-wide]") && !wide.matches) {
      event.preventDefault();
      window.location.assign(element.href);
    }
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) look();
  });

  // ---- deciding is off while the connection is lost, or when somebody else has decided

  function decidingOff() {
    const off = (lost !== null && !lost.hidden) || document.querySelector("[data-deciding-off]") !== null;
    document.querySelectorAll("[data-decides]").forEach((button) => {
      if (button.dataset.offByServer === undefined) button.dataset.offByServer = String(button.disabled);
      button.disabled = off || button.dataset.offByServer === "true";
    });
    const notice = document.querySelector("[data-dialog-notice]");
    const frozen = document.querySelector("[data-deciding-off] [data-frozen-says]");
    if (notice) {
      notice.hidden = !frozen;
      notice.textContent = frozen ? frozen.textContent : "";
    }
  }

  function connection(isLost) {
    if (!lost || lost.hidden === !isLost) return;
    lost.hidden = !isLost;
    const since = lost.querySelector("[data-connection-since]");
    if (isLost) since.textContent = `at ${window.signoffTimes.clock(window.signoffTimes.now(), false)}`;
    decidingOff();
  }

  ["htmx:sendError", "htmx:timeout"].forEach((name) => document.addEventListener(name, () => connection(true)));
  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status >= 500) connection(true);
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful) connection(false);
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-connection-retry]")) look();
  });

  // ---- the counts in the navigation: those of a fresh page, put in place so that focus and an open menu stay

  function recount(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html").querySelectorAll(".nav .count");
    const shown = document.querySelectorAll(".nav .count");
    if (fresh.length !== shown.length) return;
    shown.forEach((count, at) => {
      if (count.textContent !== fresh[at].textContent) count.textContent = fresh[at].textContent;
    });
  }
  document.addEventListener("htmx:afterRequest", (event) => {
    const { elt, successful, xhr } = event.detail;
    if (!successful || !elt.matches("[data-poll]")) return;
    if (elt.matches("[data-counts]")) recount(xhr.responseText);
    // Another poll found something new: the counts may have moved with it.
    else if (xhr.status === 200) body.dispatchEvent(new CustomEvent("signoff:moved"));
  });

  // ---- after each swap

  // Said to those who cannot see it, when it has changed and not before.
  const announcer = document.getElementById("announcer");
  const stands = () => {
    const found = document.querySelector("[data-announce]");
    return found ? found.textContent.replace(/\s+/g, " ").trim() : "";
  };
  let said = stands();
  function announce() {
    const now = stands();
    if (announcer && now && now !== said) announcer.textContent = now;
    said = now;
  }

  document.addEventListener("htmx:afterSettle", () => {
    decidingOff();
    announce();
    const chosen = document.querySelector("#detail [data-approval]");
    document.querySelectorAll("[data-row-of]").forEach((row) => {
      if (chosen && row.dataset.rowOf === chosen.dataset.approval) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    });
    const list = document.querySelector("[data-count]");
    if (list) {
      document.querySelectorAll("[data-waiting-count]").forEach((count) => {
        count.firstChild.nodeValue = list.dataset.count;
      });
    }
  });

  // ---- dialogs: filled by htmx, each also a page of its own

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id !== "dialog-content" || !dialog) return;
    if (!dialog.open) dialog.showModal();
    const first = dialog.querySelector("textarea, input:not([type=hidden])");
    if (first) first.focus();
  });
  // After one's own act the focus is on what came of it; what others do never moves it.
  document.addEventListener("signoff:decided", () => {
    if (dialog && dialog.open) dialog.close();
    look();
    setTimeout(() => {
      const outcome = document.querySelector("[data-outcome]");
      if (outcome) outcome.focus();
    }, 50);
  });
  document.addEventListener("click", (event) => {
    const close = event.target.closest("[data-close-dialog]");
    if (close && dialog && dialog.open) {
      event.preventDefault();
      dialog.close();
    }
  });
})();
