import { useSyncExternalStore } from 'react';

export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

const storageKey = 'atoll.theme';
const systemDark = matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<() => void>();
let chosen: Theme = themes.find((theme) => theme === localStorage.getItem(storageKey)) ?? 'system';

function apply(): void {
  const isDark = chosen === 'dark' || (chosen === 'system' && systemDark.matches);
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
}

/** Before the first paint, and whenever the system changes its mind. */
export function startTheme(): void {
  apply();
  systemDark.addEventListener('change', apply);
}

export function chooseTheme(theme: Theme): void {
  chosen = theme;
  localStorage.setItem(storageKey, theme);
  apply();
  for (const listener of listeners) listener();
}

export function useTheme(): Theme {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => chosen,
  );
}
