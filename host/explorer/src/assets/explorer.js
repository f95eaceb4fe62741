// What a page can do beyond being read: keys, and staying up to date. Without this file everything still works.
'use strict';

const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

// Keys: / to the filter, j and k through the rows, n to the next page.
const isTyping = (element) => element.closest('input, select, textarea, [contenteditable]');

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target)) {
    if (event.key === 'Escape') event.target.blur();
    return;
  }
  const rows = $$('a.row');
  const at = rows.indexOf(document.activeElement);
  if (event.key === '/') {
    const field = $('[data-filter] input, [data-filter] select, main input:not([type=hidden]), main textarea');
    if (!field) return;
    event.preventDefault();
    field.focus();
    field.select?.();
  } else if (event.key === 'j' || event.key === 'k') {
    const row = rows[event.key === 'j' ? Math.min(at + 1, rows.length - 1) : Math.max(at - 1, 0)];
    row?.focus();
  } else if (event.key === 'n') {
    $('[data-next]')?.click();
  }
});

// An address has only what was asked for.
document.addEventListener('submit', (event) => {
  if (!event.target.matches('[data-filter]')) return;
  for (const field of $$('input, select', event.target)) field.disabled = field.value.trim() === '';
  setTimeout(() => { for (const field of $$('input, select', event.target)) field.disabled = false; });
});

document.addEventListener('change', (event) => {
  if (event.target.matches('select[data-submit]')) event.target.form.requestSubmit();
});

// Times age, in the same words as on the server.
const ago = (then) => {
  const seconds = Math.floor(Date.now() / 1000) - Math.floor(then / 1000);
  const s = Math.abs(seconds);
  if (s < 5) return 'just now';
  if (s >= 2592000) return null;
  const text = s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 86400 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
  return seconds < 0 ? `in ${text}` : `${text} ago`;
};

setInterval(() => {
  for (const time of $$('time[data-ago]')) {
    const text = ago(Date.parse(time.dateTime));
    if (text && text !== time.textContent) time.textContent = text;
  }
}, 15000);

// Where the navigation is one line that is scrolled, the page's own name is seen.
const nav = $('#nav');
const here = nav && $('a[aria-current]', nav);
if (here && nav.scrollWidth > nav.clientWidth) nav.scrollLeft = here.offsetLeft - nav.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2;

// Live: something happened, so the parts of this page that may show it are asked for again.
const live = () => {
  const at = $('main').dataset.liveAt;
  const button = $('[data-live-switch]');
  if (!at || !button || !window.EventSource) return;
  let source = null;
  let waiting = null;
  let isAsking = false;
  let isStale = false;

  const tell = (state, text) => {
    button.dataset.state = state;
    button.textContent = text;
    button.setAttribute('aria-pressed', String(state !== 'off'));
  };

  // The part that has the focus keeps it; a part in which somebody types is left alone.
  const swap = (old, fresh) => {
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    if (focused && isTyping(focused)) return;
    const known = new Set($$('[data-key]', old).map((row) => row.dataset.key));
    const href = focused?.getAttribute('href');
    const name = focused?.id;
    old.replaceChildren(...fresh.childNodes);
    for (const row of $$('[data-key]', old)) if (known.size && !known.has(row.dataset.key)) row.classList.add('new');
    if (!focused) return;
    const again = (name && document.getElementById(name)) || (href && $$('a', old).find((link) => link.getAttribute('href') === href));
    again?.focus({ preventScroll: true });
  };

  const refresh = async () => {
    waiting = null;
    if (document.hidden || isAsking) { isStale = true; return; }
    isAsking = true;
    isStale = false;
    try {
      const answer = await fetch(location.href, { headers: { accept: 'text/html', 'x-live': '1' }, credentials: 'same-origin' });
      if (!answer.ok || answer.redirected) { stop(); tell('lost', 'Reload'); return; }
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      for (const old of $$('[data-live][id]')) {
        const fresh = page.getElementById(old.id);
        if (fresh && fresh.innerHTML !== old.innerHTML) swap(old, fresh);
      }
    } catch { tell('lost', 'Reconnecting'); } finally {
      isAsking = false;
      if (isStale && source) soon();
    }
  };

  const soon = () => { waiting ??= setTimeout(refresh, 400); };

  const start = () => {
    source = new EventSource(at);
    // What happened before the connection was there was told to nobody.
    source.onopen = () => { tell('on', 'Live'); soon(); };
    // A browser comes back by itself, but not to who was answered with something else than a stream.
    source.onerror = () => { if (source?.readyState === EventSource.CLOSED) { stop(); tell('lost', 'Reload'); } else tell('lost', 'Reconnecting'); };
    source.addEventListener('changed', soon);
    tell('lost', 'Connecting');
  };

  const stop = () => { source?.close(); source = null; };

  button.hidden = false;
  button.addEventListener('click', () => {
    if (button.textContent === 'Reload') { location.reload(); return; }
    if (source) { stop(); tell('off', 'Paused'); } else { start(); soon(); }
  });
  document.addEventListener('visibilitychange', () => { if (!document.hidden && isStale && source) soon(); });
  window.addEventListener('pagehide', stop);
  start();
};

live();
