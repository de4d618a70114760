// Follows the end of a scrolled view, or not: by what the user does, not by where the view is. While
// a finger or a button is down, and until the scroll of the user has come to rest, nothing else moves
// the view. Then its place decides: at the end it is followed, where it was moved to it stays.

/** Distance to the end that counts as the end, in pixels. */
const AT_END = 2;
/** Time after the last sign of a scroll at which it has come to rest, in milliseconds. */
const REST = 150;
/** Distance within which a finger rests, in pixels. */
const RESTS = 3;
const UP = ['ArrowUp', 'PageUp', 'Home'];
const DOWN = ['ArrowDown', 'PageDown', ' '];

export class Follower {
  #view;
  #isComplete;
  #rested;
  #follows = true;
  /** Whether the user moves the view. */
  #isHeld = false;
  /** Whether it is followed once the user lets go. */
  #willFollow = true;
  /** Where the end was when the user took hold of the view: a scroll takes its time, and the end may move on. */
  #aim = Infinity;
  /** Whether the user goes up. */
  #isUp = false;
  #fingers = 0;
  /** Whether a finger that is down has moved. */
  #isDrawn = false;
  #isPressed = false;
  /** Where this class has put the view, and how large all was then. A scroll to any other place is the user's. */
  #place = 0;
  #size = '';
  #timer;

  /** `isComplete()` tells whether the end of the view is the end of all; `rested()` is called after scrolls of the user. */
  constructor(view, { isComplete, rested }) {
    this.#view = view;
    this.#isComplete = isComplete;
    this.#rested = rested;
    const listen = (name, listener) => view.addEventListener(name, listener, { passive: true });
    listen('wheel', ({ deltaY, target }) => this.#act(deltaY < 0 && !target.closest('pre')?.scrollTop));
    listen('touchstart', (event) => this.#touched(event));
    listen('pointerdown', (event) => event.pointerType === 'mouse' && this.#pressed());
    view.addEventListener('keydown', (event) => this.#typed(event));
    listen('scroll', () => this.#scrolled());
    new ResizeObserver(() => this.keepEnd()).observe(view);
  }

  /** True if the end is followed, and the user does not move the view. */
  get isFollowing() {
    return this.#follows && !this.#isHeld;
  }

  /** Distance of the view to its end, in pixels. */
  get distance() {
    const { scrollTop, clientHeight, scrollHeight } = this.#view;
    return scrollHeight - scrollTop - clientHeight;
  }

  /** Goes to the end and follows it. */
  toEnd() {
    this.#follows = true;
    this.#willFollow = true;
    this.moveTo(this.#view.scrollHeight);
  }

  /** Keeps the end in view, if it is followed. */
  keepEnd() {
    if (this.isFollowing && this.#isComplete()) this.moveTo(this.#view.scrollHeight);
  }

  /** Follows the end no longer. */
  stop() {
    this.#follows = false;
    this.#willFollow = false;
  }

  /** Puts the view somewhere, which says nothing about the end. */
  moveTo(top) {
    this.#view.scrollTop = top;
    this.#note();
  }

  /** Runs a function that may scroll the view. */
  move(run) {
    run();
    this.#note();
  }

  #note() {
    this.#place = this.#view.scrollTop;
    this.#size = this.#measure();
  }

  #measure() {
    const { clientWidth, clientHeight, scrollHeight } = this.#view;
    return `${clientWidth} ${clientHeight} ${scrollHeight}`;
  }

  #isAtEnd() {
    return this.#isComplete() && this.distance <= AT_END;
  }

  /** The user does something that may scroll. What leads up leaves the end, however late the scroll begins. */
  #act(isUp = false) {
    if (!this.#isHeld) this.#aim = this.#view.scrollTop + this.distance;
    this.#hold();
    this.#isUp = isUp && this.#view.scrollTop > 0;
    if (this.#isUp) this.#willFollow = false;
  }

  #hold() {
    if (!this.#isHeld) {
      this.#isHeld = true;
      this.#willFollow = this.#follows || this.#isAtEnd();
    }
    clearTimeout(this.#timer);
    // A frame later the page knows of every scroll that the browser has begun by itself.
    const timer = setTimeout(() => requestAnimationFrame(() => timer === this.#timer && this.#rest()), REST);
    this.#timer = timer;
  }

  #scrolled() {
    if (Math.abs(this.#view.scrollTop - this.#place) < 1) return;
    const isResized = this.#size !== this.#measure();
    this.#note();
    const isAtEnd = this.#isAtEnd();
    // The browser itself moves a view whose content or height has changed.
    if (!this.#isHeld && (isAtEnd || isResized)) return this.keepEnd();
    // Under a finger that rests, too.
    if (this.#fingers && !this.#isDrawn && isResized) return;
    this.#hold();
    const isTheBrowsers = isResized && this.#isUp;
    this.#willFollow = !isTheBrowsers && (isAtEnd || this.#place >= this.#aim - AT_END);
  }

  #typed(event) {
    const { key, target } = event;
    if (target.closest('button, summary, input')) return;
    if (UP.includes(key) || DOWN.includes(key)) return this.#act(UP.includes(key));
    // A browser may take its time to get there, and the end moves on.
    if (key !== 'End') return;
    event.preventDefault();
    this.#isHeld = false;
    this.#follows = true;
    this.#rested();
  }

  #rest() {
    if (!this.#isHeld || this.#fingers || this.#isPressed) return;
    this.#isHeld = false;
    this.#aim = Infinity;
    this.#follows = this.#willFollow;
    this.#rested();
  }

  #touched({ target, touches }) {
    this.#fingers = touches.length;
    this.#isDrawn = false;
    this.#act();
    const { clientX: x, clientY: y } = touches[0];
    const drawn = ({ touches: [{ clientX, clientY }] }) => {
      this.#isDrawn ||= Math.hypot(clientX - x, clientY - y) > RESTS;
    };
    target.addEventListener('touchmove', drawn, { passive: true });
    // The element may be gone when the finger is lifted: then only it hears of that.
    const lifted = (event) => {
      this.#fingers = event.touches.length;
      if (this.#fingers) return;
      target.removeEventListener('touchmove', drawn);
      for (const name of ['touchend', 'touchcancel']) target.removeEventListener(name, lifted);
      this.#act();
    };
    for (const name of ['touchend', 'touchcancel']) target.addEventListener(name, lifted);
  }

  /** A button is down, perhaps on the scroll bar. Not every browser tells when that is released. */
  #pressed() {
    this.#isPressed = true;
    this.#act();
    const released = (event) => {
      if (event.type === 'pointermove' && event.buttons) return;
      this.#isPressed = false;
      for (const name of ['pointerup', 'pointercancel', 'pointermove']) window.removeEventListener(name, released);
      this.#act();
    };
    for (const name of ['pointerup', 'pointercancel', 'pointermove']) window.addEventListener(name, released);
  }
}
