import { useEffect, useState } from 'react';

/** Whether the element with this ref is in view. It may come and go. */
export function useInView(): [ref: (element: HTMLElement | null) => void, isInView: boolean] {
  const [element, setElement] = useState<HTMLElement | null>(null);
  const [isInView, setInView] = useState(false);
  useEffect(() => {
    if (!element) return;
    const observer = new IntersectionObserver((entries) => setInView(entries.at(-1)?.isIntersecting === true));
    observer.observe(element);
    return () => observer.disconnect();
  }, [element]);
  return [setElement, isInView];
}
