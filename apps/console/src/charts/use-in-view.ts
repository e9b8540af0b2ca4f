import { useEffect, useState, type RefObject } from 'react';

/** What is scrolled past faster than this was not looked at, in milliseconds. */
const lookMs = 200;

/** Whether the element is in view, and was for a moment. */
export function useInView(element: RefObject<HTMLElement | null>): boolean {
  const [isInView, setInView] = useState(false);
  useEffect(() => {
    if (!element.current) return;
    let timer = 0;
    const observer = new IntersectionObserver((entries) => {
      clearTimeout(timer);
      const isNow = entries.at(-1)?.isIntersecting === true;
      timer = window.setTimeout(() => setInView(isNow), isNow ? lookMs : 0);
    });
    observer.observe(element.current);
    return () => {
      clearTimeout(timer);
      observer.disconnect();
    };
  }, [element]);
  return isInView;
}
