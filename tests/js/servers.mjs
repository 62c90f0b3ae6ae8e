// The servers that tests start beside what is tested, how they end, and what is waited for.
export { startDropping } from './dropping.mjs';
export { atEnd, kept } from './ending.mjs';
export { startLiar } from './liar.mjs';
export { serve } from './loopback.mjs';
export { startProxy } from './proxy.mjs';
export { until } from './until.mjs';
