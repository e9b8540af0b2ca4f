import { useLayoutEffect, useState, type RefObject } from 'react';

/** The width of an element in CSS pixels, for drawings whose text keeps its size. `assumed` until it is laid out. */
export function useWidth(element: RefObject<HTMLElement | null>, assumed: number): number {
  const [width, setWidth] = useState(assumed);
  useLayoutEffect(() => {
    const observed = element.current;
    if (!observed) return;
    const observer = new ResizeObserver(([entry]) => {
      if (entry) setWidth(Math.max(200, Math.round(entry.contentRect.width)));
    });
    observer.observe(observed);
    return () => observer.disconnect();
  }, [element]);
  return width;
}
