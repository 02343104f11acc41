// Says each <time data-time> in the browser's zone, and keeps "in 42 min" true while the page is open.
// The server's words (journal/times.py) are the same, in UTC; they stand until this runs.
"use strict";

(() => {
  const root = document.documentElement;
  // The server's clock counts: a browser's own may be wrong by any amount.
  const ahead = Date.parse(root.dataset.now) - Date.now() || 0;
  const now = () => Date.now() + ahead;

  const two = (number) => String(number).padStart(2, "0");
  const days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
  const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const midnight = (date) => Date.UTC(date.getFullYear(), date.getMonth(), date.getDate());

  function length(milliseconds) {
    const seconds = Math.max(0, Math.floor(milliseconds / 1000));
    if (seconds < 60) return `${seconds} s`;
    const minutes = Math.floor(seconds / 60);
    if (minutes < 60) return `${minutes} min`;
    const hours = Math.floor(minutes / 60);
    if (hours < 24) return minutes % 60 ? `${hours} h ${two(minutes % 60)} min` : `${hours} h`;
    return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${Math.floor(hours / 24)} d`;
  }

  function clock(moment, withSeconds) {
    const there = new Date(moment);
    const here = new Date(now());
    let text = `${two(there.getHours())}:${two(there.getMinutes())}`;
    if (withSeconds) text += `:${two(there.getSeconds())}`;
    const apart = Math.round((midnight(there) - midnight(here)) / 86400000);
    if (apart === 0) return text;
    if (Math.abs(apart) < 7) return `${days[there.getDay()]} ${text}`;
    const day = `${there.getDate()} ${months[there.getMonth()]}`;
    return there.getFullYear() === here.getFullYear() ? `${day} ${text}` : `${day} ${there.getFullYear()} ${text}`;
  }

  const words = {
    clock: (moment) => clock(moment, false),
    seconds: (moment) => clock(moment, true),
    since: (moment) => length(now() - moment),
    ago: (moment) => (now() - moment < 1000 ? "just now" : `${length(now() - moment)} ago`),
    until: (moment) => (moment <= now() ? "past" : `in ${length(moment - now())}`),
    left: (moment) => (moment <= now() ? "past" : length(moment - now())),
  };

  function say(element) {
    const moment = Date.parse(element.getAttribute("datetime") || element.dataset.at);
    const speak = words[element.dataset.time];
    if (!speak || Number.isNaN(moment)) return;
    const text = speak(moment);
    if (element.textContent !== text) element.textContent = text;
    if (element.dataset.time === "left" && element.parentElement) {
      element.parentElement.classList.toggle("soon", moment - now() < 30 * 60000);
    }
  }

  function sayAll(within) {
    within.querySelectorAll("[data-time]").forEach(say);
  }

  sayAll(document);
  setInterval(() => sayAll(document), 1000);
  document.addEventListener("htmx:load", (event) => sayAll(event.target));
  window.signoffTimes = { length, clock, now };
})();
