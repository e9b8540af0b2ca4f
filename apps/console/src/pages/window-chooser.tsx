import type { MetricWindow } from '../api/queries.js';
import { Chooser } from '../parts/fields.js';
import { metricWindows } from './metric-window.js';

/** Over which window use is shown. */
export function WindowChooser({ value, onChange }: { value: MetricWindow; onChange: (window: MetricWindow) => void }) {
  return <Chooser label="Use over" value={value} choices={metricWindows} onChange={onChange} />;
}
