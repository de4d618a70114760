// What the page adds to rendered text: copy buttons, times of this time zone, direction, links, and
// names for what screen readers would meet without one.

import { copy, element, iconButton, shortTime } from './dom.js';

const ADDRESS = /https?:\/\/[^\s<>"'`]+[^\s<>"'`.,;:!?)\]}]/g;
/** A session, perhaps with an entry: `01a1e32e-6f46-72f2-bd92-1e8027b0bda3:12`. */
const SESSION = /([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{4}([0-9a-f]{8}))(?::(\d+))?/g;

/** Decorates rendered text. */
export function decorate(node) {
  for (const pre of node.querySelectorAll('pre')) {
    const frame = element('div', { class: 'code' });
    pre.replaceWith(frame);
    pre.tabIndex = 0;
    frame.append(pre, iconButton('copy', 'Copy code', (event) => copy(pre.textContent, event.currentTarget)));
  }
  for (const time of node.querySelectorAll('time')) time.textContent = shortTime(time.dateTime);
  for (const part of node.querySelectorAll('p, li, th, td, h3, h4, h5, h6, blockquote')) part.dir = 'auto';
  for (const table of node.querySelectorAll('table')) table.tabIndex = 0;
  for (const box of node.querySelectorAll('input[type=checkbox]')) box.ariaLabel = box.checked ? 'done' : 'to do';
  const texts = node.classList.contains('entry') ? node.querySelectorAll(':scope > .text') : [node];
  for (const text of texts) link(text, ADDRESS, ([href]) => element('a', { href, target: '_blank', rel: 'noopener noreferrer' }, href));
  const notices = node.querySelectorAll('.notice');
  for (const notice of node.matches('.notice') ? [node] : notices) {
    link(notice, SESSION, ([, id, short, seq]) => element('a', { href: seq ? `/s/${id}/${seq}` : `/s/${id}` }, seq ? `${short}:${seq}` : short));
  }
}

/** Puts links in place of what fits a pattern, where there is neither a link nor code yet. */
function link(node, pattern, draw) {
  const texts = [];
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) if (!walker.currentNode.parentElement.closest('a, code, pre')) texts.push(walker.currentNode);
  for (const text of texts) {
    const found = [...text.data.matchAll(pattern)];
    if (!found.length) continue;
    let end = 0;
    const parts = found.flatMap((match) => {
      const before = text.data.slice(end, match.index);
      end = match.index + match[0].length;
      return [before, draw(match)];
    });
    text.replaceWith(...parts, text.data.slice(end));
  }
}
