// Keeps what a person is writing until it is sent: a session that ends, or a reload, does not lose it.
// Only in this tab's sessionStorage, and only text that was typed here.
"use strict";

(() => {
  const name = (field) => `signoff-draft:${field.dataset.draft}`;

  function restore(within) {
    within.querySelectorAll("[data-draft]").forEach((field) => {
      const kept = sessionStorage.getItem(name(field));
      if (kept && !field.value) field.value = kept;
    });
  }

  document.addEventListener("input", (event) => {
    const field = event.target;
    if (!field.dataset || !field.dataset.draft) return;
    if (field.value) sessionStorage.setItem(name(field), field.value);
    else sessionStorage.removeItem(name(field));
  });
  // A page that shows a decision needs no draft for it any more.
  function forget(within) {
    within.querySelectorAll("[data-draft-done]").forEach((done) => {
      Object.keys(sessionStorage)
        .filter((key) => key.startsWith(`signoff-draft:${done.dataset.draftDone}`))
        .forEach((key) => sessionStorage.removeItem(key));
    });
  }

  document.addEventListener("htmx:load", (event) => {
    restore(event.target);
    forget(document);
  });
  restore(document);
  forget(document);
})();
