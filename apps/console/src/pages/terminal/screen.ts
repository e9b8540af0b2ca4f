import '@xterm/xterm/css/xterm.css';
import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import type { TerminalSize } from './terminal-link.js';
import { adoptStyles } from './xterm-under-policy.js';

interface ScreenListeners {
  onTyped: (bytes: Uint8Array<ArrayBuffer>) => void;
  onResize: (size: TerminalSize) => void;
  /** Ctrl Shift E: the way out for those who have no mouse, since Tab belongs to the shell. */
  onLeave: () => void;
}

export interface Screen {
  size(): TerminalSize;
  write(output: Uint8Array | string): void;
  focus(): void;
  dispose(): void;
}

/** The platform's limits to a size. */
const within = (length: number) => Math.min(1_000, Math.max(1, length));

/** A terminal in an element, as large as that is. Dark in both themes, as what runs in it expects. */
export function openScreen(element: HTMLElement, { onTyped, onResize, onLeave }: ScreenListeners): Screen {
  const restoreDocument = adoptStyles();
  const terminal = new Terminal({
    cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches,
    fontFamily: getComputedStyle(document.documentElement).getPropertyValue('--mono'),
    fontSize: 13,
    minimumContrastRatio: 4.5,
    scrollback: 5_000,
    theme: {
      background: '#0a1113',
      foreground: '#eaf1f0',
      cursor: '#4fc3c4',
      cursorAccent: '#0a1113',
      selectionBackground: '#2c5c60',
    },
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(element);
  fit.fit();
  const encoder = new TextEncoder();
  terminal.onData((text) => onTyped(encoder.encode(text)));
  // Reports of the mouse in the old form are bytes, and no text.
  terminal.onBinary((text) => onTyped(Uint8Array.from(text, (character) => character.charCodeAt(0) & 255)));
  const size = () => ({ columns: within(terminal.cols), rows: within(terminal.rows) });
  terminal.onResize(() => onResize(size()));
  terminal.attachCustomKeyEventHandler((event) => {
    const isWayOut = event.ctrlKey && event.shiftKey && event.code === 'KeyE';
    if (isWayOut && event.type === 'keydown') {
      event.preventDefault();
      onLeave();
    }
    return !isWayOut;
  });
  const observer = new ResizeObserver(() => fit.fit());
  observer.observe(element);
  return {
    size,
    write: (output) => terminal.write(output),
    focus: () => terminal.focus(),
    dispose: () => {
      observer.disconnect();
      terminal.dispose();
      restoreDocument();
    },
  };
}
