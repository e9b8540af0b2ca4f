import { useVirtualizer } from '@tanstack/react-virtual';
import { Link } from '@tanstack/react-router';
import { useLayoutEffect, useRef, useState, type RefObject } from 'react';
import { logInstant } from '../../format/format.js';
import { Button } from '../../parts/button.js';
import { addressOf, type FeedState } from './log-feed.js';

/** As in logs.css. */
const rowHeight = 24;
const beyond = 12;
const nearTop = 20 * rowHeight;

interface LogTableProps {
  feed: FeedState;
  zone: string;
  isOfSeveralPods: boolean;
  isLive: boolean;
  /** Index of the selected line; -1: none. */
  selected: number;
  onTop: () => void;
}

/** The lines of a log, however many: only those in view are in the page. */
export function LogTable({ feed, zone, isOfSeveralPods, isLive, selected, onTop }: LogTableProps) {
  const { lines } = feed;
  const box = useRef<HTMLDivElement>(null);
  // oxlint-disable-next-line react/incompatible-library -- nothing here is compiled
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: beyond,
    initialRect: { width: 0, height: 600 },
  });
  const { isAtBottom, onScroll, toBottom } = useStableScroll(box, feed, selected);
  const visible = rows.getVirtualItems();
  const before = visible[0]?.start ?? 0;
  const after = rows.getTotalSize() - (visible.at(-1)?.end ?? 0);
  return (
    <div className="log">
      <div
        ref={box}
        className="log-box"
        role="region"
        aria-label="Log"
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls
        tabIndex={0}
        onScroll={({ currentTarget }) => {
          onScroll();
          if (currentTarget.scrollTop < nearTop) onTop();
        }}
      >
        <table aria-rowcount={lines.length + 1}>
          <thead>
            <tr>
              <th scope="col">Time</th>
              {isOfSeveralPods && (
                <th scope="col" className="log-pod">
                  Pod
                </th>
              )}
              <th scope="col">Line</th>
            </tr>
          </thead>
          <tbody>
            <tr aria-hidden="true" style={{ height: before }} />
            {visible.map(({ index }) => {
              const line = lines[index];
              if (!line) return null;
              const { day, clock } = logInstant(line.timestamp, zone);
              return (
                <tr
                  key={feed.first + index}
                  aria-rowindex={index + 2}
                  {...(index === selected && { 'aria-current': true })}
                >
                  <th scope="row">
                    <Link
                      to="."
                      search={(search) => ({ ...search, at: addressOf(lines, index) })}
                      replace
                      resetScroll={false}
                      preload={false}
                    >
                      <span className="log-day">{day}, </span>
                      {clock}
                    </Link>
                  </th>
                  {isOfSeveralPods && <td className="log-pod">{line.pod_name}</td>}
                  <td className="log-text">
                    {line.stream !== 'stdout' && line.stream !== null && (
                      <span className="log-stream">{line.stream}</span>
                    )}
                    {line.message}
                  </td>
                </tr>
              );
            })}
            <tr aria-hidden="true" style={{ height: after }} />
          </tbody>
        </table>
      </div>
      {isLive && !isAtBottom && (
        <div className="log-jump">
          <Button isSmall kind="primary" onPress={toBottom}>
            Go to the newest line
          </Button>
        </div>
      )}
    </div>
  );
}

/** Keeps the visible lines in place when earlier lines are added, and follows the end if it is in view. */
function useStableScroll(box: RefObject<HTMLDivElement | null>, { lines, first }: FeedState, selected: number) {
  const [isAtBottom, setAtBottom] = useState(true);
  const placedFirst = useRef<number | null>(null);
  const toBottom = () => box.current?.scrollTo({ top: box.current.scrollHeight });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const before = placedFirst.current;
    placedFirst.current = first;
    if (before === null && selected >= 0) element.scrollTo({ top: selected * rowHeight - element.clientHeight / 2 });
    else if (before === null || (isAtBottom && selected < 0)) element.scrollTo({ top: element.scrollHeight });
    else if (before !== first) element.scrollBy({ top: (before - first) * rowHeight });
    // oxlint-disable-next-line react/exhaustive-deps -- it moves only when lines come or go
  }, [lines, first]);
  const onScroll = () => {
    const element = box.current;
    if (element) setAtBottom(element.scrollHeight - element.scrollTop - element.clientHeight < 2 * rowHeight);
  };
  return { isAtBottom, onScroll, toBottom };
}
