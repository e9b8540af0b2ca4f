import { useNavigate, useRouter, useSearch } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';

/** What a long listing shows, in the address of its page. What is left out has its default. */
export interface ListingSearch {
  /** What is sought in it. */
  find?: string;
  page?: string;
}

/** Characters that the find field takes. */
export const mostFound = 100;

/** The time after the last key until the address has what was typed, in milliseconds: browsers refuse many changes. */
const restMs = 300;

export interface Place {
  typed: string;
  page: number;
  /** As the address has it, which waits until no key is pressed: what the platform is asked for. */
  asked: { find: string; page: number };
  find: (text: string) => void;
  /** The field is left: the address has what was typed at once. */
  leave: () => void;
  turn: (page: number) => void;
}

/**
 * What is sought in a listing, and its page: in the address, so that a reload, Back and a link keep them, or in the
 * listing alone. What is typed replaces the entry in the history, and a page turned is a new one. Pages count from
 * `first`.
 */
export function useListingPlace(isInAddress: boolean, first: 0 | 1 = 1): Place {
  const address: ListingSearch = useSearch({ strict: false });
  const navigate = useNavigate();
  const [own, setOwn] = useState<ListingSearch>({});
  /** What was typed and the address does not have yet. */
  const [draft, setDraft] = useState<string | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const { history } = useRouter();
  useEffect(() => {
    // Another entry of the history is shown: what was typed on the one that was left is not for it.
    const stop = history.subscribe(({ action: { type } }) => {
      if (type === 'PUSH' || type === 'REPLACE') return;
      clearTimeout(timer.current);
      setDraft(null);
    });
    return () => {
      stop();
      clearTimeout(timer.current);
    };
  }, [history]);
  const { find: sought = '', page = String(first) } = isInAddress ? address : own;
  if (draft === sought) setDraft(null);
  const go = (place: ListingSearch, replace: boolean) => {
    clearTimeout(timer.current);
    if (!isInAddress) {
      setOwn(place);
      return;
    }
    const search = (before: object) => ({ ...before, find: '', page: '', ...place });
    void navigate({ to: '.', search, replace, resetScroll: false });
  };
  const typed = draft ?? sought;
  return {
    typed,
    page: draft === null ? Number(page) : first,
    asked: { find: sought.trim(), page: Number(page) },
    find: (text) => {
      if (!isInAddress) {
        setOwn({ find: text });
        return;
      }
      setDraft(text);
      clearTimeout(timer.current);
      timer.current = setTimeout(() => go({ find: text }, true), restMs);
    },
    leave: () => {
      if (draft !== null) go({ find: draft }, true);
    },
    turn: (next) => go({ find: typed, page: String(next) }, false),
  };
}
