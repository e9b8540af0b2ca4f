/**
 * Gives the focus to the open dialog, or else to the content of the page, where what had it is gone: a row that was
 * deleted, a button that another one replaced. Browsers leave it nowhere then, and the keyboard would begin at the top
 * of the page.
 */
export function keepFocus(): void {
  let last: EventTarget | null = null;
  const isLost = () => document.activeElement === document.body && last instanceof Element && !last.isConnected;
  const restore = () => {
    if (!isLost()) return;
    const place = document.querySelector<HTMLElement>('[role=dialog]') ?? document.querySelector('main');
    if (!place) return;
    place.tabIndex = -1;
    place.focus({ preventScroll: true });
  };
  addEventListener('focusin', ({ target }) => (last = target));
  // Later than dialogs that close, which give the focus back in the next frame.
  new MutationObserver(() => {
    if (isLost()) requestAnimationFrame(() => requestAnimationFrame(restore));
  }).observe(document.body, { childList: true, subtree: true });
}
